/** How a model calls tools in its text: no schema, only tags. */
export interface TagProtocol {
  /** Lower case, digits and dashes; the harness's name. */
  readonly name: string
  readonly think: string
  /** The tag whose text is run, and the tag around what came of it. */
  readonly run: string
  readonly result: string
  /** The tag whose text is handed in; ends the attempt. */
  readonly solve: string
  /** Rows of a result that are shown. */
  readonly shownRows: number
  /** Turns, the one with the solution included. */
  readonly maxTurns: number
}

/** SkyRL-SQL (NovaSky-AI/SkyRL skyrl-gym/skyrl_gym/envs/sql/env.py at 259f0b0): 5 turns, at most 50 rows. */
export const skyRlSql: TagProtocol = {
  name: 'skyrl-sql',
  think: 'think',
  run: 'sql',
  result: 'observation',
  solve: 'solution',
  shownRows: 50,
  maxTurns: 5,
}

/**
 * ReEx-SQL (arXiv 2505.12768): intermediate statements, of whose result the columns and at most 3 rows are shown. The paper
 * continues one answer; here the result is a turn of the user, so that any chat engine can serve it.
 */
export const reExSql: TagProtocol = {
  name: 'reex-sql',
  think: 'think',
  run: 'intermediate_sql',
  result: 'result',
  solve: 'final_sql',
  shownRows: 3,
  maxTurns: 8,
}

/** What an answer asks for. */
export type TagAction =
  | { readonly kind: 'run' | 'solve'; readonly sql: string }
  /** It breaks the format; `why` is for the model. */
  | { readonly kind: 'malformed'; readonly why: string }

/**
 * Reads one answer of the model, nothing else of the conversation: a result that it writes itself is no result, and a
 * solution that stands in somebody else's text is none. Well formed is: thoughts, then exactly one statement or solution
 * as the last thing, no tags within it, no result of its own.
 */
export function parseTags(answer: string, protocol: TagProtocol): TagAction {
  const { think, run, result, solve } = protocol
  const calls = [...answer.matchAll(new RegExp(`<(${run}|${solve})>([\\s\\S]*?)</\\1>`, 'g'))]
  const [call] = calls
  const malformed = (why: string): TagAction => ({ kind: 'malformed', why })
  if (new RegExp(`</?${result}\\b`, 'i').test(answer)) return malformed(`<${result}> is not yours to write`)
  if (call === undefined) return malformed(`there is neither <${run}>…</${run}> nor <${solve}>…</${solve}>`)
  if (calls.length > 1) return malformed(`there is more than one <${run}> or <${solve}>`)
  const [whole, tag, sql = ''] = call
  const before = answer.slice(0, call.index)
  if (!new RegExp(`^\\s*<${think}>[\\s\\S]*?</${think}>`).test(before)) {
    return malformed(`the answer does not begin with <${think}>…</${think}>`)
  }
  if (answer.slice(call.index + whole.length).trim() !== '') return malformed(`text follows </${tag}>`)
  if (new RegExp(`</?(?:${think}|${run}|${solve})\\b`, 'i').test(sql)) return malformed(`tags stand within <${tag}>`)
  if (sql.trim() === '') return malformed(`<${tag}> is empty`)
  return { kind: tag === solve ? 'solve' : 'run', sql: sql.trim() }
}

/** What came of a turn, as the model reads it: a turn of the user. What is shown cannot close the tag around it. */
export function resultTurn(text: string, left: number, { result }: TagProtocol): string {
  const shown = text.replaceAll(/<(?=\/?[a-z_]+>)/gi, '‹')
  const turns = left === 1 ? 'One turn is left: give the solution.' : `${left} turns are left.`
  return `<${result}>${shown}\n<reminder>${turns}</reminder></${result}>`
}

/** The head and the first rows of a shown table, with what `execute_sql` says of their number. */
export function firstRows(text: string, rows: number): string {
  const lines = text.split('\n')
  if (lines.length <= rows + 2) return text
  return [...lines.slice(0, rows + 1), `[the first ${rows} rows; ${lines.at(-1)?.replace(/^\[/, '') ?? ''}`].join('\n')
}

/** How a model is told to work. */
export function instructions(protocol: TagProtocol, engine: string): string {
  const { think, run, result, solve, maxTurns, shownRows } = protocol
  return [
    `You answer a question about a ${engine} database with one query, in at most ${maxTurns} turns.`,
    `Begin every turn with <${think}>your thoughts</${think}>.`,
    `To look around, end the turn with <${run}>one statement</${run}>; you are shown <${result}> with at most ${shownRows} rows.`,
    `When you are sure, end the turn with <${solve}>the query</${solve}>; it counts once.`,
    'Ask sqlite_master or information_schema for the tables.',
  ].join('\n')
}
