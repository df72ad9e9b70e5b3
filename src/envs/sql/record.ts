import { z } from 'zod'
import type { Box } from '../../sandbox/index.ts'
import type { ArtifactItem, Artifacts } from '../contract.ts'

/** Where the record stands among the artifacts. No file of the box: the agent can neither read nor write it. */
const recordPath = '/paddock/sql.json'

const recordSchema = z.object({
  /** Distinct statements that `execute_sql` ran without an error. */
  explored: z.array(z.string()),
  /** What a harness that speaks in tags saw; null: another harness. */
  tags: z.object({ turns: z.int(), malformed: z.int() }).nullable(),
})

/** What an agent did before it submitted, as the host saw it. */
export type SqlRecord = z.infer<typeof recordSchema>

const records = new WeakMap<Box, SqlRecord>()
/** Statements beyond these are not looked at. */
const maxExplored = 200

/** The record of the attempt in this box. */
function recordOf(box: Box): SqlRecord {
  const found = records.get(box)
  if (found !== undefined) return found
  const fresh: SqlRecord = { explored: [], tags: null }
  records.set(box, fresh)
  return fresh
}

/** Notes a statement that ran. Blanks do not make another one. */
export function noteExplored(box: Box, sql: string): void {
  const { explored } = recordOf(box)
  const plain = sql
    .replaceAll(/\s+/g, ' ')
    .replace(/[\s;]+$/, '')
    .trim()
  if (explored.length < maxExplored && !explored.includes(plain)) explored.push(plain)
}

/** For a harness whose tools are tags in the text: its turns, and those that broke the format. */
export function noteTags(box: Box, tags: NonNullable<SqlRecord['tags']>): void {
  recordOf(box).tags = tags
}

/** The record as an artifact, for the verifier and for a later one. */
export function recordArtifact(box: Box): ArtifactItem {
  const data = Buffer.from(JSON.stringify(recordOf(box)))
  const entries = [{ type: 'file' as const, path: 'sql.json', mode: 0o444, data }]
  return { path: recordPath, content: { found: true, entries, refused: [], cutShort: false, totalBytes: data.length } }
}

/** The record among artifacts; null where none was taken, as in rollouts from before there was one. */
export function recordAmong(artifacts: Artifacts): SqlRecord | null {
  const entry = artifacts.items.find(({ path }) => path === recordPath)?.content.entries[0]
  return entry?.type === 'file' ? recordSchema.parse(JSON.parse(Buffer.from(entry.data).toString('utf8'))) : null
}
