/** A query without the word DISTINCT outside of strings, names and comments. */
export function withoutDistinct(sql: string): string {
  return sql.replaceAll(tokens, (token) => (token.toLowerCase() === 'distinct' ? '' : token))
}

/**
 * A query as Spider's test suite runs it (`postprocess` and `replace_cur_year` of exec_eval.py): the operators `> =`, `< =` and
 * `! =` in one piece, and MySQL's `YEAR(CURDATE())` as 2020. Outside of strings, names and comments only.
 */
export function spiderRepaired(sql: string): string {
  return sql.replaceAll(repairable, (token) => {
    if (/^[<>!] =$/.test(token)) return token.replace(' ', '')
    return /^year/i.test(token) && token.endsWith(')') ? '2020' : token
  })
}

/** Whether a query orders its own rows: the words ORDER BY outside of parentheses, strings, names and comments. */
export function ordersItsRows(sql: string): boolean {
  let depth = 0
  let before = ''
  for (const [token] of sql.matchAll(tokens)) {
    if (token.startsWith('--') || token.startsWith('/*')) continue
    const word = token.toLowerCase()
    if (word === '(') depth += 1
    else if (word === ')') depth -= 1
    else if (depth === 0 && before === 'order' && word === 'by') return true
    before = word
  }
  return false
}

const tokens = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+|[^\s\w]/g
/** What a repair must not touch comes first. */
const repairable =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|[<>!] =|\byear\s*\(\s*curdate\s*\(\s*\)\s*\)/gi
