import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { ArtifactItem, Artifacts } from '../contract.ts'

/** Where the record stands among the artifacts. No file of the box: the agent can neither read nor write it. */
export const recordPath = '/paddock/search.json'

const recordSchema = z.object({
  searches: z.array(z.object({ query: z.string(), hits: z.array(z.string()) })),
  opened: z.array(z.string()),
  answer: z.object({ text: z.string(), citations: z.array(z.string()) }).nullable(),
  /** Share of noise, where it changes over a training. */
  noise: z.number().optional(),
})

/** What an agent did with the tools, as the host saw it: all that a verdict is made of. */
export type SearchRecord = z.infer<typeof recordSchema>

/** The record of one attempt while it grows. */
export interface OpenRecord extends SearchRecord {
  answer: SearchRecord['answer']
  noise?: number
  /** Queries that were taken on, also those without a result yet. */
  started: number
}

const records = new WeakMap<Box, OpenRecord>()

/** The record of the attempt in this box. */
export function recordOf(box: Box): OpenRecord {
  const found = records.get(box)
  if (found !== undefined) return found
  const fresh: OpenRecord = { searches: [], opened: [], answer: null, started: 0 }
  records.set(box, fresh)
  return fresh
}

/**
 * Throws `BOX_DEAD` when the box of the attempt is gone. The tools would still work, but what an agent does after the
 * death of its box is no attempt any more.
 */
export async function requireAlive(box: Box): Promise<void> {
  const death = await Promise.race([box.died, Promise.resolve(null)])
  if (death !== null) throw new PaddockError('BOX_DEAD', `The box died: ${death.detail}`)
}

/** The record as an artifact, for the verifier and for a later one. */
export function toArtifact({ searches, opened, answer, noise }: SearchRecord): ArtifactItem {
  const data = Buffer.from(JSON.stringify({ searches, opened, answer, noise } satisfies SearchRecord))
  return {
    path: recordPath,
    content: {
      found: true,
      entries: [{ type: 'file', path: 'search.json', mode: 0o444, data }],
      refused: [],
      cutShort: false,
      totalBytes: data.length,
    },
  }
}

/** A record that somebody else wrote; null where it is none. */
export function parseRecord(bytes: Uint8Array): SearchRecord | null {
  try {
    return recordSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
  } catch {
    return null
  }
}

/** The record among artifacts. Throws `VERIFIER_FAILED` when there is none: it is ours, never the agent's, to be there. */
export function fromArtifacts(artifacts: Artifacts): SearchRecord {
  const item = artifacts.items.find(({ path }) => path === recordPath)
  const [entry] = item?.content.entries.filter(({ type }) => type === 'file') ?? []
  if (entry?.type !== 'file') throw new PaddockError('VERIFIER_FAILED', 'The record of the searches is missing')
  try {
    return recordSchema.parse(JSON.parse(Buffer.from(entry.data).toString('utf8')))
  } catch (cause) {
    throw new PaddockError('VERIFIER_FAILED', 'The record of the searches cannot be read', { cause })
  }
}
