import { z } from 'zod'
import type { Box } from '../../sandbox/index.ts'
import type { Tool, ToolOutcome } from '../contract.ts'
import { defineTool } from '../tool.ts'
import { submissionPath } from './box.ts'
import type { SqlData } from './data.ts'
import { engineOf } from './engines/index.ts'
import { describeText, failureText, observationLimits, resultText, tablesText } from './observe.ts'
import { noteExplored } from './record.ts'
import { residentIn } from './resident.ts'
import type { RunnerRequest } from './runner.ts'
import type { RunnerAnswer, RunnerFailure, RunnerRequests } from './wire.ts'

type Ok<Op extends keyof RunnerRequests> = Exclude<RunnerAnswer<Op>, RunnerFailure>

/** Tools of an sql task. All of them run in the agent's box; none of them changes its database. */
export function sqlTools(data: SqlData): readonly Tool[] {
  const engine = engineOf(data.database)
  const db = engine.database
  const run = async <Op extends keyof RunnerRequests>(
    { box, signal }: { readonly box: Box; readonly signal: AbortSignal },
    request: RunnerRequest<Op>,
    text: (answer: Ok<Op>) => string,
  ): Promise<ToolOutcome> => {
    const limits = {
      timeoutMs: data.limits.executeMs,
      maxRows: observationLimits.rows,
      maxBytes: 4 * observationLimits.characters,
      memoryMb: 256,
    }
    const began = performance.now()
    const answer = await residentIn(box, engine).ask(request, { limits, signal })
    const facts = { elapsedMs: Math.round(performance.now() - began) }
    if (isFailure(answer)) {
      return { status: answer.kind === 'timeout' ? 'timeout' : 'error', text: failureText(answer), facts }
    }
    // What is not a failure is the operation's own answer; a conditional type cannot be narrowed further.
    return { status: 'ok', text: text(answer as Ok<Op>), facts }
  }
  return [
    defineTool({
      name: 'list_tables',
      description: 'Lists the tables and views of the database with their numbers of rows.',
      input: z.object({}),
      run: (context) => run(context, { op: 'tables', db }, tablesText),
    }),
    defineTool({
      name: 'describe_table',
      description: 'Shows the columns, types, keys and indexes of a table.',
      input: z.object({ table: z.string().min(1) }),
      run: (context, { table }) => run(context, { op: 'describe', db, table }, describeText),
    }),
    defineTool({
      name: 'sample_rows',
      description: 'Shows the first rows of a table, the same ones every time.',
      input: z.object({ table: z.string().min(1), rows: z.int().min(1).max(20).optional().describe('Default 5.') }),
      run: (context, { table, rows }) =>
        run(context, { op: 'sample', db, table, maxRows: rows ?? 5 }, (answer) =>
          resultText({ ...answer, more: false }),
        ),
    }),
    defineTool({
      name: 'execute_sql',
      description:
        data.mode === 'query'
          ? `Runs one reading statement (SELECT, WITH, VALUES, EXPLAIN) on ${engine.title} and shows at most 50 rows.`
          : `Runs a script on a fresh copy of the ${engine.title} database, shows the rows of its last query, and drops the copy.`,
      input: z.object({ sql: z.string().min(1) }),
      run: async (context, { sql }) => {
        const outcome = await (data.mode === 'query'
          ? run(context, { op: 'query', db, sql }, resultText)
          : run(context, { op: 'script', db, sql }, scriptText))
        if (outcome.status === 'ok') noteExplored(context.box, sql)
        return outcome
      },
    }),
    defineTool({
      name: 'submit_sql',
      description:
        data.mode === 'query'
          ? 'Hands in the query that answers the question. Only the first submission counts.'
          : 'Hands in the script that does what was asked, to be run on a fresh copy. Only the first submission counts.',
      input: z.object({ sql: z.string().min(1).max(65_536) }),
      run: async (context, { sql }) => {
        const outcome = await run(context, { op: 'submit', path: submissionPath, sql }, ({ taken }) =>
          taken ? taken_ : refused_,
        )
        return outcome.text === refused_ ? { ...outcome, status: 'error' } : outcome
      },
    }),
  ]
}

const taken_ = 'Submitted.'
const refused_ = 'There is a submission already; only the first counts.'

function scriptText(answer: Ok<'script'>): string {
  const changed = `[${answer.changes} rows changed; the copy is dropped]`
  return answer.columns.length === 0 ? changed : `${resultText(answer)}\n${changed}`
}

function isFailure(answer: { readonly status: 'ok' | 'error' }): answer is RunnerFailure {
  return answer.status === 'error'
}
