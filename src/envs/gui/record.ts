import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { ArtifactItem, Artifacts } from '../contract.ts'

/** Where the record stands among the artifacts. No file of the box: the agent can neither read nor write it. */
export const recordPath = '/paddock/gui.json'

const recordSchema = z.object({
  /** How the agent ended its attempt; null: it did not. */
  ended: z.enum(['done', 'answered', 'failed']).nullable(),
  answer: z.string().nullable(),
  actions: z.int(),
  /** Changes that came by no form of the app's; all were refused. */
  forged: z.int(),
  /** State of the app at the end, as the host has it. */
  state: z.unknown(),
  /** The agent's /workspace, where a task is scored by it too: digest or kind of each path. */
  files: z.record(z.string(), z.string()).optional(),
})

/** What is known of an attempt, all of it from the host's side: all that a verdict is made of. */
export type GuiRecord = z.infer<typeof recordSchema>

/** The record as an artifact, for the verifier and for a later one. */
export function toArtifact(record: GuiRecord): ArtifactItem {
  const data = Buffer.from(JSON.stringify(record))
  return {
    path: recordPath,
    content: {
      found: true,
      entries: [{ type: 'file', path: 'gui.json', mode: 0o444, data }],
      refused: [],
      cutShort: false,
      totalBytes: data.length,
    },
  }
}

/** The record among artifacts. Throws `VERIFIER_FAILED` when there is none: it is ours, never the agent's, to be there. */
export function fromArtifacts(artifacts: Artifacts): GuiRecord {
  const item = artifacts.items.find(({ path }) => path === recordPath)
  const [entry] = item?.content.entries.filter(({ type }) => type === 'file') ?? []
  if (entry?.type !== 'file') throw new PaddockError('VERIFIER_FAILED', 'The record of the gui attempt is missing')
  try {
    return recordSchema.parse(JSON.parse(Buffer.from(entry.data).toString('utf8')))
  } catch (cause) {
    throw new PaddockError('VERIFIER_FAILED', 'The record of the gui attempt cannot be read', { cause })
  }
}
