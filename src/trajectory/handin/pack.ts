import { type Digest, type Event, type Id, PaddockError, sha256 } from '../../core/index.ts'
import type { SessionLog, StoreReader } from '../contract/index.ts'
import { framesOf } from '../recorder/index.ts'
import { join, type PackedRecords } from './form.ts'

/** A rollout as bytes that has ended, or whose agent was done and that is unverified. The same rollout gives the same bytes. */
export interface PackedRollout {
  readonly rolloutId: Id
  /** SHA-256 of the bytes. */
  readonly digest: Digest
  readonly bytes: Buffer
}

/** What is read to pack a rollout. */
export type PackSource = Pick<StoreReader, 'recorder' | 'catalogue' | 'blobs'>

/**
 * Packs a rollout with its sessions, its records and the blobs that they name, to be handed in to another store.
 * Throws `NOT_FOUND`; `STORE_CONFLICT` where it has not ended.
 */
export async function packRollout(from: PackSource, rolloutId: Id): Promise<PackedRollout> {
  const { catalogue, recorder } = from
  const rollout = await catalogue.rollout(rolloutId)
  if (rollout.end === null && rollout.work === null)
    throw new PaddockError('STORE_CONFLICT', `rollout ${rolloutId} has not ended`)
  const sessions: SessionLog[] = []
  for (const { id } of await recorder.sessions({ rolloutId })) sessions.push(await recorder.session(id))
  const [run, group, task] = await Promise.all([
    catalogue.run(rollout.runId),
    catalogue.group(rollout.groupId),
    catalogue.task(rollout.taskDigest),
  ])
  const events = inOrder([...(await recorder.events({ rolloutId })), ...sessions.flatMap((log) => log.events)])
  const records = { task, run, group, rollout, ...(await engineOf(from, sessions)) }
  const { frames: facts } = framesOf({ sessions, events })
  const blobs = await blobsNamed(from, JSON.stringify([task, run, rollout, events]))
  const bytes = join({ records, facts, blobs })
  return { rolloutId, digest: sha256(bytes), bytes }
}

/** Each once, by time. */
function inOrder(events: readonly Event[]): readonly Event[] {
  return [...new Map(events.map((event) => [event.id, event])).values()].toSorted((a, b) => a.at - b.at)
}

async function engineOf(
  { catalogue }: PackSource,
  sessions: readonly SessionLog[],
): Promise<Pick<PackedRecords, 'fingerprints' | 'tokenTexts'>> {
  const digests = new Set(sessions.flatMap(({ calls }) => calls.flatMap(({ intent }) => intent.fingerprint ?? [])))
  const fingerprints = await Promise.all([...digests].toSorted().map((digest) => catalogue.fingerprint(digest)))
  const ids = [...new Set(sessions.flatMap(({ segments }) => segments.flatMap(({ tokens }) => [...tokens])))]
  const tokenizers = [...new Set(fingerprints.flatMap(({ tokenizer }) => tokenizer ?? []))].toSorted()
  const tokenTexts = await Promise.all(
    tokenizers.map(async (tokenizer): Promise<PackedRecords['tokenTexts'][number]> => {
      const texts = [...(await catalogue.tokenTexts(tokenizer, ids))].toSorted(([a], [b]) => a - b)
      return [tokenizer, texts.map(([id, bytes]) => [id, Buffer.from(bytes).toString('base64')])]
    }),
  )
  return { fingerprints, tokenTexts }
}

/** Whatever looks like a digest and is one of a blob. */
async function blobsNamed(
  { blobs }: PackSource,
  text: string,
): Promise<readonly { digest: Digest; content: Uint8Array }[]> {
  const named: { digest: Digest; content: Uint8Array }[] = []
  for (const digest of [...new Set(text.match(/\b[0-9a-f]{64}\b/g))].toSorted()) {
    if (await blobs.has(digest)) named.push({ digest, content: await blobs.get(digest) })
  }
  return named
}
