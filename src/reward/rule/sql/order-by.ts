/** A query without the word DISTINCT outside of strings, names and comments. */
export function withoutDistinct(sql: string): string {
  return sql.replaceAll(tokens, (token) => (token.toLowerCase() === 'distinct' ? '' : token))
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
