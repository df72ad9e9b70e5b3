/** Functions that an expression may use, by the names of LaTeX and of plain text. */
const functions: Readonly<Record<string, string>> = {
  sqrt: 'sqrt',
  sin: 'sin',
  cos: 'cos',
  tan: 'tan',
  arcsin: 'asin',
  arccos: 'acos',
  arctan: 'atan',
  asin: 'asin',
  acos: 'acos',
  atan: 'atan',
  sinh: 'sinh',
  cosh: 'cosh',
  tanh: 'tanh',
  exp: 'exp',
  ln: 'log',
  log: 'log10',
  abs: 'abs',
}
const constants: Readonly<Record<string, string>> = { pi: 'pi', infty: 'Infinity', inf: 'Infinity', e: 'e' }
const operators: Readonly<Record<string, string>> = { cdot: '*', times: '*', ast: '*', div: '/' }
/** Commands that change how something looks and not what it is. */
const dressing =
  /\\(?:left|right|displaystyle|textstyle|limits|quad|qquad|big|Big|bigl|bigr|mathrm|mathbf|operatorname)\b|\\[,;:! ]|~|\$|\\[()[\]]/g

/** What may stand in one expression, beside brackets. */
type Token =
  | { readonly kind: 'value' | 'function' | 'operator'; readonly text: string }
  | { readonly kind: 'open' | 'close'; readonly text: string }

/** An answer without what only dresses it. Braces of sets stay as `\{` and `\}`. */
export function undressed(text: string): string {
  return text
    .replaceAll(dressing, ' ')
    .replaceAll(/\^\s*\{?\s*\\circ\s*\}?|(?<=\S\s*)\\(?:text|mbox)\s*\{[^{}]*\}\s*$/g, '')
    .replaceAll(/\\(?:text|mbox)\s*\{([^{}]*)\}/g, '$1')
    .replaceAll(/\\[dt]frac\b/g, '\\frac')
    .replaceAll(/\\(sin|cos|tan)\s*\^\s*\{?(\d+)\}?\s*(\([^()]*\)|[A-Za-z])/g, '(\\$1 $3)^$2')
    .replaceAll('−', '-')
    .trim()
    .replace(/\.$/, '')
}

/** The content of the last `\boxed{…}`; null where there is none. */
export function lastBoxed(text: string): string | null {
  const at = text.lastIndexOf('\\boxed{')
  return at < 0 ? null : (groupAt(text, at + '\\boxed'.length)?.content ?? null)
}

/**
 * One expression as plain text with every multiplication written out, in letters, numbers, `+ - * / ^ ( )` and the names of
 * functions; null for what is none. `1\frac{1}{2}` is one and a half, as it is read in school.
 */
export function plainExpression(text: string): string | null {
  const tokens = tokensOf(text)
  if (tokens === null || tokens.length === 0) return null
  let out = ''
  let before: Token | null = null
  for (const token of tokens) {
    const ended = before?.kind === 'value' || before?.kind === 'close'
    const begins = token.kind === 'value' || token.kind === 'function' || token.kind === 'open'
    const text = before?.kind === 'function' && token.kind === 'value' ? `(${token.text})` : token.text
    out += ended && begins ? `*${text}` : text
    before = token
  }
  return out
}

function tokensOf(text: string): readonly Token[] | null {
  const tokens: Token[] = []
  let rest = text
  while ((rest = rest.trimStart()) !== '') {
    const number = /^(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|^\.\d+/.exec(rest)?.[0]
    if (number !== undefined) {
      tokens.push({ kind: 'value', text: number.replaceAll(',', '') })
      rest = rest.slice(number.length)
      continue
    }
    const read = rest.startsWith('\\') ? command(rest, tokens) : letterOrSign(rest, tokens)
    if (read === null) return null
    rest = rest.slice(read)
  }
  return tokens
}

/** Reads one command of LaTeX; how many characters it took, or null. */
function command(rest: string, tokens: Token[]): number | null {
  if (rest.startsWith('\\%')) {
    tokens.push({ kind: 'operator', text: '/100' })
    return 2
  }
  const name = /^\\([A-Za-z]+)/.exec(rest)?.[1]
  if (name === undefined) return null
  const after = name.length + 1
  if (name === 'frac') return fraction(rest, after, tokens)
  if (name === 'sqrt') return root(rest, after, tokens)
  return named(name, after, tokens)
}

function named(name: string, length: number, tokens: Token[]): number | null {
  const operator = operators[name]
  const value = constants[name]
  const call = functions[name]
  if (operator !== undefined) tokens.push({ kind: 'operator', text: operator })
  else if (value !== undefined) tokens.push({ kind: 'value', text: value })
  else if (call !== undefined) tokens.push({ kind: 'function', text: call })
  else return null
  return length
}

function fraction(rest: string, after: number, tokens: Token[]): number | null {
  const over = argumentAt(rest, after)
  const under = over === null ? null : argumentAt(rest, over.end)
  if (over === null || under === null) return null
  const [top, bottom] = [plainExpression(over.content), plainExpression(under.content)]
  if (top === null || bottom === null) return null
  const before = tokens.at(-1)
  const isMixed = before?.kind === 'value' && /^\d+$/.test(before.text) && /^\d+$/.test(top) && /^\d+$/.test(bottom)
  if (isMixed) tokens.pop()
  tokens.push({ kind: 'value', text: isMixed ? `(${before.text}+${top}/${bottom})` : `((${top})/(${bottom}))` })
  return under.end
}

function root(rest: string, after: number, tokens: Token[]): number | null {
  const degree = /^\s*\[([^\]]*)\]/.exec(rest.slice(after))
  const of = argumentAt(rest, after + (degree?.[0].length ?? 0))
  const inner = of === null ? null : plainExpression(of.content)
  const nth = degree === null ? '2' : plainExpression(degree[1] ?? '')
  if (of === null || inner === null || nth === null) return null
  tokens.push({ kind: 'value', text: degree === null ? `sqrt(${inner})` : `((${inner})^(1/(${nth})))` })
  return of.end
}

function letterOrSign(rest: string, tokens: Token[]): number | null {
  const word = /^[A-Za-z]+/.exec(rest)?.[0]
  if (word !== undefined) {
    const known = Object.keys({ ...functions, ...constants }).find((name) => name.length > 1 && word.startsWith(name))
    if (known !== undefined) return named(known, known.length, tokens)
    tokens.push({ kind: 'value', text: word.slice(0, 1) })
    return 1
  }
  const sign = rest.slice(0, 1)
  if (sign === '%') tokens.push({ kind: 'operator', text: '/100' })
  else if ('+-*/^'.includes(sign)) tokens.push({ kind: 'operator', text: rest.startsWith('**') ? '^' : sign })
  else if ('({['.includes(sign)) tokens.push({ kind: 'open', text: '(' })
  else if (')}]'.includes(sign)) tokens.push({ kind: 'close', text: ')' })
  else return null
  return rest.startsWith('**') ? 2 : 1
}

/** The argument of a command: a group, or the one character that follows. */
function argumentAt(text: string, at: number): { readonly content: string; readonly end: number } | null {
  const start = at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0)
  if (text[start] === '{') return groupAt(text, start)
  const one = /^(?:\\[A-Za-z]+|[0-9A-Za-z])/.exec(text.slice(start))?.[0]
  return one === undefined ? null : { content: one, end: start + one.length }
}

function groupAt(text: string, start: number): { readonly content: string; readonly end: number } | null {
  let depth = 0
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    else if (text[at] === '}') depth -= 1
    if (depth === 0) return { content: text.slice(start + 1, at), end: at + 1 }
  }
  return null
}
