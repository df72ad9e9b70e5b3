import type { Artifacts, BoxContext, Environment } from '../contract.ts'
import { defineEnvironment, type TaskOf } from '../define.ts'
import { sqlNeeds, submissionPath } from './box.ts'
import { type SqlData, sqlDataSchema } from './data.ts'
import { engineOf } from './engines/index.ts'
import { generateRecords, recordLevels } from './generate/index.ts'
import { loadSqlTasks } from './load.ts'
import { outsideWork } from './outside.ts'
import { cheatsOf, distractorsOf, oracleOf, solutionsOf } from './scripts.ts'
import { recordArtifact } from './record.ts'
import { residentIn } from './resident.ts'
import { sqlTools } from './tools.ts'
import { sqlVerifierVersion, verifySubmission } from './verify.ts'

/**
 * Questions about databases (SQLite, DuckDB, PostgreSQL), and changes to them. The agent looks around with tools that run in its box on its
 * own copy and hands in one statement or script; a fresh box runs it beside the gold.
 */
export const sql: Environment = defineEnvironment({
  name: 'sql',
  apiVersion: 1,
  verifierVersion: sqlVerifierVersion,
  task: sqlDataSchema,
  load: loadSqlTasks,
  generators: [{ name: 'records', levels: recordLevels, generate: generateRecords }],
  box: sqlNeeds,
  setup: async ({ task, box, signal }) => {
    const engine = engineOf(task.data.database)
    await engine.start(box, signal)
    residentIn(box, engine).start()
  },
  tools: (task) => sqlTools(task.data),
  // Harnesses with a system prompt of their own read this only.
  userPrompt: ({ instruction, data }) => `${instruction}\n\n${handIn(data)}`,
  systemPrompt: ({ data }) => (data.mode === 'query' ? queryPrompt(data) : writePrompt(data)),
  collect: collectSubmission,
  verify: verifySubmission,
  outside: () => outsideWork,
  isReadOnly: ({ data }) => data.mode === 'query',
  scripts: { oracle: oracleOf, solutions: solutionsOf, cheats: cheatsOf, distractors: distractorsOf },
})

const common = 'Look around with list_tables, describe_table, sample_rows and execute_sql. There is nobody to ask.'
const queryPrompt = ({ database }: SqlData) =>
  `You answer a question about a ${engineOf(database).title} database with one query. ${common} The database is read-only. ` +
  'When you are sure, call submit_sql once with the query; only the first submission counts. It must be right for ' +
  'other contents of the same tables too.'
const writePrompt = ({ database }: SqlData) =>
  `You change a ${engineOf(database).title} database with a script. ${common} execute_sql works on a copy that is dropped after each call. ` +
  'When you are sure, call submit_sql once with the script; only the first submission counts. It runs on a fresh copy, ' +
  'and what that copy holds afterwards is compared.'

const handIn = ({ database, mode }: SqlData) =>
  `Hand in one ${engineOf(database).title} ${mode === 'query' ? 'query' : 'script'} with the tool submit_sql, once.`

/** Takes the submission after the box stands still. `submit_sql` takes 65,536 characters, which is at most this much. */
async function collectSubmission({
  box,
  signal,
}: Omit<BoxContext, 'task'> & { readonly task: TaskOf<SqlData> }): Promise<Artifacts> {
  await box.killBackground()
  await box.freeze()
  signal.throwIfAborted()
  const content = await box.getFiles(submissionPath, { maxBytes: 4 * 65_536 })
  return { items: [{ path: submissionPath, content }, recordArtifact(box)] }
}
