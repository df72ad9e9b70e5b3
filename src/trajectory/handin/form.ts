/** What travels when a rollout is handed in: frames of the journal, the first of which says what the others are. */
import { type Digest, type EngineFingerprint, PaddockError, type Task } from '../../core/index.ts'
import type { GroupRecord, RolloutView, RunRecord } from '../contract/index.ts'
import { type Entry, frameLength, frameOf, readFrame } from '../journal/index.ts'

/** Grows with every change of what stands in a pack. */
const form = 1

/** What the catalogue knows of a rollout. */
export interface PackedRecords {
  readonly task: Task
  readonly run: RunRecord
  readonly group: GroupRecord
  readonly rollout: RolloutView
  readonly fingerprints: readonly EngineFingerprint[]
  /** Base64 by id, for each tokenizer. */
  readonly tokenTexts: readonly (readonly [
    tokenizer: string,
    texts: readonly (readonly [id: number, bytes: string])[],
  ])[]
}

/** A pack taken apart. */
export interface PackParts {
  readonly records: PackedRecords
  /** Facts of the log. */
  readonly facts: readonly Buffer[]
  readonly blobs: readonly { readonly digest: Digest; readonly content: Uint8Array }[]
}

interface Head extends PackedRecords {
  readonly paddock: 'rollout'
  readonly form: number
  /** How many frames behind the first are facts of the log; the others are blobs. */
  readonly facts: number
  readonly blobs: readonly Digest[]
}

/** The bytes of a pack. */
export function join({ records, facts, blobs }: PackParts): Buffer {
  const digests = blobs.map(({ digest }) => digest)
  const head: Head = { paddock: 'rollout', form, ...records, facts: facts.length, blobs: digests }
  const contents = blobs.map(({ content }): Entry => ({ head: null, parts: [content] }))
  return Buffer.concat([frameOf({ head, parts: [] }), ...facts, ...contents.map(frameOf)])
}

/** Throws `HANDIN_DAMAGED`. */
export function takeApart(bytes: Buffer): PackParts {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const length = frameLength(bytes, at)
    if (length === null || at + length > bytes.length) throw damaged(`it ends within a frame, at byte ${at}`)
    frames.push(bytes.subarray(at, at + length))
    at += length
  }
  const [first, ...rest] = frames
  if (first === undefined) throw damaged('it is empty')
  const head = headOf(first)
  if (rest.length !== head.facts + head.blobs.length) throw damaged(`it has ${rest.length} frames and not all of them`)
  const { task, run, group, rollout, fingerprints, tokenTexts } = head
  return {
    records: { task, run, group, rollout, fingerprints, tokenTexts },
    facts: rest.slice(0, head.facts),
    blobs: head.blobs.map((digest, place) => {
      const [content] = read(rest[head.facts + place]).parts
      if (content === undefined) throw damaged(`blob ${digest} is missing`)
      return { digest, content }
    }),
  }
}

/** What was handed in is not what was sent, or no rollout. */
export function damaged(why: string): PaddockError {
  return new PaddockError('HANDIN_DAMAGED', `the rollout cannot be ingested: ${why}`)
}

function headOf(frame: Buffer): Head {
  const { head } = read(frame)
  // Its bytes have the digest that was told with them; which program wrote them is looked at here.
  const { paddock, form: of } = (head ?? {}) as Partial<Head>
  if (paddock !== 'rollout') throw damaged('it does not begin as a rollout does')
  if (of !== form) throw damaged(`it has form ${String(of)}, this program reads ${form}: both sides need one version`)
  return head as Head
}

function read(frame: Buffer | undefined): { readonly head: unknown; readonly parts: readonly Uint8Array[] } {
  const entry = frame === undefined ? null : readFrame(frame)
  if (entry === null) throw damaged('a frame does not have its checksum')
  return entry
}
