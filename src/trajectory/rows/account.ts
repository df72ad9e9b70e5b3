import type { DropReason, MaskReason, TokenAccounting } from '../rows-contract.ts'
import type { SessionLog } from '../contract/index.ts'
import type { BuiltRows } from './build.ts'
import { AnswerLengths } from './answer-lengths.ts'
import { ownBucket } from './usable.ts'
import { unseenTokens } from './unseen.ts'

/** All sampled tokens of a session, tails behind stop cuts and those known from the usage alone included. */
export function sampledTokens(log: SessionLog): number {
  let total = unseenTokens(log)
  for (const segment of log.segments) if (segment.origin === 'sampled') total += segment.tokens.length
  return total
}

/** Adds up buckets over sessions and rollouts (invariant I4). */
export class Accounting {
  #sampled = 0
  #trainable = 0
  readonly #masked: Partial<Record<MaskReason, number>> = {}
  readonly #notExported: Partial<Record<DropReason, number>> = {}
  readonly #lengths = new AnswerLengths()

  /** A session whose rows are exported. */
  exported(log: SessionLog, built: BuiltRows): void {
    this.#sampled += sampledTokens(log)
    const seen = new Map<string, { state: Uint8Array; reason: MaskReason }>()
    for (const row of built.rows) {
      for (const segment of row.segments) {
        if (segment.origin !== 'sampled') continue
        const length = segment.end - segment.start
        let cover = seen.get(segment.segmentId)
        if (cover === undefined || cover.state.length < length) {
          const state = new Uint8Array(length)
          if (cover !== undefined) state.set(cover.state)
          cover = { state, reason: cover?.reason ?? segment.maskReason ?? 'missing_logprob' }
        }
        if (cover.reason === 'owned_elsewhere') cover.reason = segment.maskReason ?? 'missing_logprob'
        seen.set(segment.segmentId, cover)
        for (let i = 0; i < length; i += 1) {
          if (row.mask[segment.start + i] === 1) cover.state[i] = 2
          else if (cover.state[i] === 0) cover.state[i] = 1
        }
      }
    }
    for (const { state, reason } of seen.values()) {
      let trainable = 0
      for (const value of state) {
        if (value === 2) trainable += 1
        else add(this.#masked, reason, 1)
      }
      this.#trainable += trainable
      this.#lengths.add(state.length, trainable)
    }
    this.#untrained(log, seen)
    for (const [reason, count] of entries(built.outside.masked)) add(this.#masked, reason, count)
    for (const [reason, count] of entries(built.outside.notExported)) add(this.#notExported, reason, count)
  }

  /** A session none of whose rows is exported. */
  dropped(log: SessionLog, reason: DropReason): void {
    const sampled = sampledTokens(log)
    this.#sampled += sampled
    this.#untrained(log, new Map())
    if (sampled > 0) add(this.#notExported, ownBucket(log.session) ?? reason, sampled)
  }

  /** The buckets so far. */
  total(): TokenAccounting {
    return {
      sampled: this.#sampled,
      trainable: this.#trainable,
      masked: { ...this.#masked },
      notExported: { ...this.#notExported },
      byAnswerLength: this.#lengths.shares(),
    }
  }

  /** Answers that are in no row. */
  #untrained({ session, segments }: SessionLog, inRows: ReadonlyMap<string, unknown>): void {
    if (ownBucket(session) !== null) return
    for (const { id, origin, tokens } of segments) {
      if (origin === 'sampled' && !inRows.has(id)) this.#lengths.add(tokens.length, 0)
    }
  }
}

function add<Reason extends string>(counts: Partial<Record<Reason, number>>, reason: Reason, count: number): void {
  counts[reason] = (counts[reason] ?? 0) + count
}

function entries<Reason extends string>(counts: Readonly<Partial<Record<Reason, number>>>): [Reason, number][] {
  // `Object.entries` widens the keys to string; the record has no others.
  return Object.entries(counts) as [Reason, number][]
}
