/**
 * Request bodies as chains of differences within a session.
 *
 * Each call's facts and body are stored against the most similar of the session's last bodies (sub-agents and side
 * calls interleave, so the one before is not always the nearest). A run of {@link runLength} differences ends in a
 * keyframe; a keyframe is itself a difference from the keyframe before, and every {@link runLength}-th of those is
 * stored whole. So a read applies at most 2 x 63 differences, and bytes still grow with new text only: whole
 * keyframes would again be quadratic in the session.
 */
import { hash } from 'node:crypto'
import { type Id, PaddockError } from '../../core/index.ts'
import { unpackBytes } from './codec.ts'
import { type Delta, findDelta, middleOf } from './delta.ts'
import { type DigestState, digestFrom } from './digest-state.ts'

/** Differences in a run, and keyframes until a whole one. */
export const runLength = 64
/** How many of a session's last bodies are tried as base. */
const candidates = 4
/** A body that differs by no more than this has found its base. */
const nearBytes = 1024

/** A call's texts: its facts (JSON) and the client's body. */
export interface Texts {
  readonly facts: Uint8Array
  readonly body: Uint8Array
}

/** How texts stand to those of an earlier call: what the `calls` table holds of them. */
export interface TextDelta {
  /** Place in the run + {@link runLength} x number of keyframes before it. */
  readonly depth: number
  readonly facts: Delta
  readonly body: Delta
  readonly sha256: Uint8Array
}

/** Texts as they are stored. */
export interface EncodedTexts extends TextDelta {
  readonly base: Id | null
  /** What their base does not have: {@link unpackTexts} takes it apart. */
  readonly middles: Uint8Array
  /** For the next body of the session. */
  readonly digest: DigestState | null
}

/** A call whose texts are at hand, as a base for later ones. */
export interface BaseCall extends Texts {
  readonly id: Id
  readonly depth: number
  readonly digest: DigestState | null
  /** How many bytes it has in common with its own base at their start: the next call mostly has no fewer with it. */
  readonly shared: { readonly facts: number; readonly body: number }
  /** The first call of its run; null: it is that itself. */
  readonly keyframe: BaseCall | null
}

const whole: Delta = { prefix: 0, suffix: 0 }

/** Stores texts against the nearest of `recent`. Pure. */
export function encodeTexts(texts: Texts, recent: readonly BaseCall[]): EncodedTexts {
  const chosen = chooseBase(texts, recent)
  const facts = chosen === null ? whole : findDelta(chosen.base.facts, texts.facts, chosen.base.shared.facts)
  const body = chosen === null ? whole : chosen.body
  const { sha256, state } = digestFrom(chosen?.base.digest ?? null, texts.body, body.prefix)
  return {
    base: chosen === null ? null : chosen.base.id,
    depth: chosen === null ? 0 : chosen.depth,
    facts,
    body,
    sha256,
    middles: joined(middleOf(texts.facts, facts), middleOf(texts.body, body)),
    digest: state,
  }
}

/** Throws `STORE_CORRUPT` when a body does not have its digest. */
export function checkBody(stored: TextDelta, texts: Texts): void {
  if (hash('sha256', texts.body, 'buffer').compare(stored.sha256) !== 0) {
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

/** A call that was just stored or loaded, as a base for the next; `first` is the first call of its base's run. */
export function asBase(call: Omit<BaseCall, 'keyframe'>, first: BaseCall | null): BaseCall {
  const { id, depth, facts, body, digest, shared } = call
  return { id, depth, facts, body, digest, shared, keyframe: isKeyframe(depth) ? null : first }
}

/** The first call of the run that a call is in. */
export function keyframeOf(call: BaseCall): BaseCall {
  return call.keyframe ?? call
}

/** Puts a base in front of those that stay at hand, at most {@link candidates}. Returns the one that does not. */
export function remember(recent: BaseCall[], base: BaseCall): BaseCall | undefined {
  recent.unshift(base)
  return recent.length > candidates ? recent.pop() : undefined
}

interface ChosenBase {
  readonly base: BaseCall
  /** Of the call that stands on it. */
  readonly depth: number
  readonly body: Delta
}

/** Null: stored whole. */
function chooseBase(texts: Texts, recent: readonly BaseCall[]): ChosenBase | null {
  let best: BaseCall | null = null
  let found = whole
  for (const candidate of recent) {
    const delta = findDelta(candidate.body, texts.body, candidate.shared.body)
    const saved = delta.prefix + delta.suffix
    if (best === null || saved > found.prefix + found.suffix) {
      found = delta
      best = candidate
    }
    // Hardly anything can be nearer than a base that holds nearly all of it.
    if (texts.body.byteLength - saved <= nearBytes || (saved >= candidate.body.byteLength && saved > 0)) break
  }
  if (best === null) return null
  if ((best.depth + 1) % runLength !== 0) return { base: best, depth: best.depth + 1, body: found }
  const keyframe = keyframeOf(best)
  const depth = (Math.floor(keyframe.depth / runLength) + 1) * runLength
  if (depth >= runLength * runLength) return null
  return { base: keyframe, depth, body: findDelta(keyframe.body, texts.body) }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = Buffer.allocUnsafe(4 + first.byteLength + second.byteLength)
  both.writeUInt32LE(first.byteLength, 0)
  both.set(first, 4)
  both.set(second, 4 + first.byteLength)
  return both
}
