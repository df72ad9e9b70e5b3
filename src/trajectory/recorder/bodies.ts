/**
 * Request bodies as chains of differences within a session.
 *
 * Each call's facts and body are stored against the most similar of the session's last bodies (sub-agents and side
 * calls interleave, so the one before is not always the nearest). A run of {@link runLength} differences ends in a
 * keyframe; a keyframe is itself a difference from the keyframe before, and every {@link runLength}-th of those is
 * stored whole. So a read applies at most 2 x 15 differences, and bytes still grow with new text only: whole
 * keyframes would again be quadratic in the session.
 */
import { createHash } from 'node:crypto'
import { packBytes, unpackBytes } from './codec.ts'
import { type Delta, findDelta, middleOf } from './delta.ts'
import { PaddockError } from '../../core/index.ts'

/** Differences in a run, and keyframes until a whole one. */
export const runLength = 16
/** How many of a session's last bodies are tried as base. */
const candidates = 4

/** A call's texts: its facts (JSON) and the client's body. */
export interface Texts {
  readonly facts: Uint8Array
  readonly body: Uint8Array
}

/** What the `calls` table holds of them. */
export interface StoredTexts {
  readonly base: number | null
  /** Place in the run + {@link runLength} x number of keyframes before it. */
  readonly depth: number
  readonly facts: Delta
  readonly body: Delta
  readonly sha256: Uint8Array
  readonly pack: Uint8Array
}

/** A call whose texts are at hand, as a base for later ones. */
export interface BaseCall extends Texts {
  readonly n: number
  readonly depth: number
  /** The first call of its run; itself when it is one. */
  readonly keyframe: Omit<BaseCall, 'keyframe'>
}

const whole: Delta = { prefix: 0, suffix: 0 }

/** Stores texts against the nearest of `recent`. Pure. */
export function encodeTexts(texts: Texts, recent: readonly BaseCall[]): StoredTexts {
  const base = chooseBase(texts, recent)
  const facts = base === null ? whole : findDelta(base.facts, texts.facts)
  const body = base === null ? whole : findDelta(base.body, texts.body)
  return {
    base: base === null ? null : base.n,
    depth: base === null ? 0 : base.depth,
    facts,
    body,
    sha256: createHash('sha256').update(texts.body).digest(),
    pack: packPair(middleOf(texts.facts, facts), middleOf(texts.body, body)),
  }
}

/** Throws `STORE_CORRUPT` when a body does not have its digest. */
export function checkBody(stored: StoredTexts, texts: Texts): void {
  if (createHash('sha256').update(texts.body).digest().compare(stored.sha256) !== 0) {
    throw new PaddockError('STORE_CORRUPT', 'a request body does not have its digest')
  }
}

/** The middles of both texts, freshly allocated. Throws `STORE_CORRUPT`. */
export function unpackTexts(pack: Uint8Array): { facts: Uint8Array<ArrayBuffer>; body: Uint8Array<ArrayBuffer> } {
  const joined = unpackBytes(pack)
  const end = 4 + new DataView(joined.buffer, joined.byteOffset).getUint32(0, true)
  return { facts: joined.slice(4, end), body: joined.slice(end) }
}

/** True for the depth of a call that starts a run. */
export function isKeyframe(depth: number): boolean {
  return depth % runLength === 0
}

/** A call that was just stored or loaded, as a base for the next. */
export function asBase(n: number, depth: number, texts: Texts, keyframe: Omit<BaseCall, 'keyframe'> | null): BaseCall {
  const self = { n, depth, facts: texts.facts, body: texts.body }
  return { ...self, keyframe: keyframe === null || isKeyframe(depth) ? self : keyframe }
}

/** The bases that stay at hand: one more, at most {@link candidates}. */
export function remember(recent: readonly BaseCall[], base: BaseCall): readonly BaseCall[] {
  return [base, ...recent.slice(0, candidates - 1)]
}

/** The base, with the depth that a call on it gets; null: stored whole. */
function chooseBase(texts: Texts, recent: readonly BaseCall[]): Omit<BaseCall, 'keyframe'> | null {
  let best: BaseCall | null = null
  let saved = -1
  for (const candidate of recent) {
    const delta = findDelta(candidate.body, texts.body)
    if (delta.prefix + delta.suffix > saved) {
      saved = delta.prefix + delta.suffix
      best = candidate
    }
    // Nothing can be nearer than a base that is contained whole.
    if (saved >= candidate.body.byteLength && saved > 0) break
  }
  if (best === null) return null
  if ((best.depth + 1) % runLength !== 0) return { ...best, depth: best.depth + 1 }
  const next = (Math.floor(best.keyframe.depth / runLength) + 1) * runLength
  return next >= runLength * runLength ? null : { ...best.keyframe, depth: next }
}

function packPair(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = Buffer.allocUnsafe(4 + first.byteLength + second.byteLength)
  joined.writeUInt32LE(first.byteLength, 0)
  joined.set(first, 4)
  joined.set(second, 4 + first.byteLength)
  return packBytes(joined)
}
