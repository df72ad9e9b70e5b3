/** One instruction of a Dockerfile. */
export interface Instruction {
  /** In capitals. */
  readonly word: string
  /** What follows, its continued lines joined, without here-documents. */
  readonly rest: string
  /** Its first line, from 1, and its last, here-documents left out. */
  readonly line: number
  readonly lastLine: number
  /** Whether here-documents belong to it. */
  readonly hasHeredoc: boolean
}

/** Comments at the top that mean something (Dockerfile reference, "Parser directives"), by their names in lower case. */
export function directivesOf(
  dockerfile: string,
): ReadonlyMap<string, { readonly value: string; readonly line: number }> {
  const found = new Map<string, { value: string; line: number }>()
  for (const [i, line] of dockerfile.split(/\r?\n/).entries()) {
    const [, name, value] = /^\s*#\s*([A-Za-z][\w.-]*)\s*=\s*(\S.*?)\s*$/.exec(line) ?? []
    if (name === undefined || value === undefined || found.has(name.toLowerCase())) break
    found.set(name.toLowerCase(), { value, line: i + 1 })
  }
  return found
}

/** Instructions with their continued lines, without comments and the bodies of here-documents. */
export function instructionsOf(dockerfile: string): readonly Instruction[] {
  const escape = directivesOf(dockerfile).get('escape')?.value ?? '\\'
  const lines = dockerfile.split(/\r?\n/)
  const found: Instruction[] = []
  let open = ''
  let first = 0
  for (let i = 0; i < lines.length; i += 1) {
    const line = lines[i] ?? ''
    if (/^\s*#/.test(line) || (line.trim() === '' && open !== '')) continue
    if (open === '') first = i
    const whole = open + line
    if (whole.trimEnd().endsWith(escape)) {
      open = `${whole.trimEnd().slice(0, -1)} `
      continue
    }
    open = ''
    const [, word, rest] = /^\s*([a-z]+)\s+([^]*)$/i.exec(whole) ?? []
    if (word === undefined || rest === undefined) continue
    const end = /^(?:RUN|COPY|ADD)$/i.test(word) ? heredocEnd(lines, i, rest) : i
    const hasHeredoc = end > i
    found.push({ word: word.toUpperCase(), rest: rest.trim(), line: first + 1, lastLine: i + 1, hasHeredoc })
    i = end
  }
  return found
}

/** Index of the line that ends the last here-document begun by `rest`; `at` where none is begun, or one never ends. */
function heredocEnd(lines: readonly string[], at: number, rest: string): number {
  let end = at
  for (const [, dash, , name] of rest.matchAll(/(?<=^|\s)\d*<<(-?)(["']?)([A-Za-z_][\w.-]*)\2(?=\s|$)/g)) {
    const isEnd = (line: string): boolean => (dash === '-' ? line.replace(/^\t+/, '') : line) === name
    const found = lines.findIndex((line, i) => i > end && isEnd(line))
    if (found === -1) return at
    end = found
  }
  return end
}

/** `A=1 B="two words"`, `A one value to the end`, and `ARG A` without a value. */
export function assignmentsOf(rest: string): readonly (readonly [string, string | null])[] {
  const old = /^([A-Za-z_]\w*)\s+([^=]*)$/.exec(rest)
  if (old?.[1] !== undefined) return [[old[1], old[2] ?? '']]
  return [...rest.matchAll(/([A-Za-z_]\w*)(?:=("(?:[^"\\]|\\.)*"|'[^']*'|\S*))?/g)].map(([, key = '', value]) => [
    key,
    value === undefined ? null : value.replaceAll(/^(["'])([^]*)\1$/g, '$2'),
  ])
}

/** With the values that are known, `:-` and `:+` heeded; what is not known stays as it is written. */
export function expanded(text: string, known: ReadonlyMap<string, string>): string {
  return text.replaceAll(
    /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?([-+])([^}]*))?\})/g,
    (written: string, bare?: string, braced?: string, sign?: string, other?: string) => {
      const value = known.get(bare ?? braced ?? '')
      if (sign === '+') return value === undefined || value === '' ? '' : (other ?? '')
      return (value === '' && sign === '-' ? other : value) ?? (sign === '-' ? other : undefined) ?? written
    },
  )
}
