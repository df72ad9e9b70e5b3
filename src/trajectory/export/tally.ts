import { PaddockError } from '../../core/index.ts'
import { AnswerLengths } from '../rows/index.ts'
import type { DropReason, ExportRollout, MaskReason, Row, TokenAccounting } from '../rows-contract.ts'

/** Sampled tokens of one rollout that lie in rows, each counted once however many rows share it. */
export interface RowTally {
  readonly trainable: number
  readonly masked: Readonly<Partial<Record<MaskReason, number>>>
  /** By sampled segment: how long it is in rows, and how many of its tokens train. */
  readonly answers: ReadonlyMap<string, { readonly length: number; readonly trainable: number }>
}

interface SegmentCover {
  /** 0: in no row, 1: masked in all rows so far, 2: trained in one. */
  readonly state: Uint8Array
  reason: MaskReason
}

/**
 * Counts a rollout's rows token by token, independently of who built them.
 * Throws `STORE_CORRUPT` where a row's arrays disagree or a token is trained twice (invariant I3).
 */
export function tallyRows(rows: readonly Row[]): RowTally {
  const covers = new Map<string, SegmentCover>()
  for (const row of rows) {
    checkRow(row)
    for (const segment of row.segments) {
      if (segment.origin !== 'sampled') continue
      const length = segment.end - segment.start
      const cover = coverOf(covers, segment.segmentId, length, segment.maskReason)
      for (let i = 0; i < length; i += 1) {
        const trained = row.mask[segment.start + i] === 1
        if (trained && cover.state[i] === 2) {
          throw corrupt(row, `token ${i} of segment ${segment.segmentId} is trained in two rows`)
        }
        if (trained) cover.state[i] = 2
        else if (cover.state[i] === 0) cover.state[i] = 1
      }
    }
  }
  let trainable = 0
  const masked: Partial<Record<MaskReason, number>> = {}
  const answers = new Map<string, { length: number; trainable: number }>()
  for (const [id, { state, reason }] of covers) {
    let own = 0
    for (const value of state) {
      if (value === 2) own += 1
      else if (value === 1) masked[reason] = (masked[reason] ?? 0) + 1
    }
    trainable += own
    answers.set(id, { length: state.length, trainable: own })
  }
  return { trainable, masked, answers }
}

/**
 * Moves the tokens of rows that an exporter left out to `notExported`, so that every sampled token stays in exactly
 * one bucket (invariant I4).
 */
export class DropLedger {
  #trainable = 0
  readonly #masked: Partial<Record<MaskReason, number>> = {}
  readonly #notExported: Partial<Record<DropReason, number>> = {}
  readonly #withdrawn: { readonly length: number; readonly trainable: number }[] = []
  #counted = 0

  /** Notes a rollout: all its rows, and those that stay with the reason of the first row that does not. */
  note(rollout: ExportRollout, kept: readonly Row[], reason: DropReason): void {
    const all = tallyRows(rollout.rows)
    this.#counted += all.trainable
    if (kept.length === rollout.rows.length) return
    const left = tallyRows(kept)
    let dropped = all.trainable - left.trainable
    this.#trainable += dropped
    for (const name of maskReasons(all, left)) {
      const change = (all.masked[name] ?? 0) - (left.masked[name] ?? 0)
      this.#masked[name] = (this.#masked[name] ?? 0) + change
      dropped += change
    }
    this.#notExported[reason] = (this.#notExported[reason] ?? 0) + dropped
    for (const [id, { length, trainable }] of all.answers) {
      const lost = trainable - (left.answers.get(id)?.trainable ?? 0)
      if (lost > 0) this.#withdrawn.push({ length, trainable: lost })
    }
  }

  /**
   * The selection's accounting after the drops. Throws `STORE_CORRUPT` when the selection counted other trainable
   * tokens than its rows hold, or does not add up.
   */
  settle(selected: TokenAccounting): TokenAccounting {
    if (selected.trainable !== this.#counted) {
      throw new PaddockError(
        'STORE_CORRUPT',
        `The selection counts ${selected.trainable} trainable tokens, its rows hold ${this.#counted}`,
      )
    }
    const masked = { ...selected.masked }
    for (const name of Object.keys(this.#masked) as MaskReason[]) {
      masked[name] = (masked[name] ?? 0) - (this.#masked[name] ?? 0)
      if (masked[name] === 0) delete masked[name]
    }
    const notExported = { ...selected.notExported }
    for (const name of Object.keys(this.#notExported) as DropReason[]) {
      notExported[name] = (notExported[name] ?? 0) + (this.#notExported[name] ?? 0)
    }
    const lengths = new AnswerLengths(selected.byAnswerLength)
    for (const { length, trainable } of this.#withdrawn) lengths.withdraw(length, trainable)
    const settled = {
      sampled: selected.sampled,
      trainable: selected.trainable - this.#trainable,
      masked,
      notExported,
      byAnswerLength: lengths.shares(),
    }
    const total = settled.trainable + sum(masked) + sum(notExported)
    if (total !== settled.sampled) {
      throw new PaddockError(
        'STORE_CORRUPT',
        `The accounting does not add up: ${settled.sampled} sampled tokens, ${total} in buckets`,
      )
    }
    return settled
  }
}

/** Sum of a record of counts. */
export function sum(counts: Readonly<Partial<Record<string, number>>>): number {
  let total = 0
  for (const count of Object.values(counts)) total += count ?? 0
  return total
}

function maskReasons(a: RowTally, b: RowTally): readonly MaskReason[] {
  // `Object.keys` widens to string; both records are keyed by MaskReason.
  return [...new Set([...Object.keys(a.masked), ...Object.keys(b.masked)])] as MaskReason[]
}

function coverOf(
  covers: Map<string, SegmentCover>,
  id: string,
  length: number,
  reason: MaskReason | null,
): SegmentCover {
  const known = covers.get(id)
  // A token without a reason inside a trained segment is one whose logprob is missing: all others are trained.
  const given = reason ?? 'missing_logprob'
  if (known === undefined) {
    const cover = { state: new Uint8Array(length), reason: given }
    covers.set(id, cover)
    return cover
  }
  if (known.reason === 'owned_elsewhere') known.reason = given
  if (known.state.length >= length) return known
  const grown = { state: new Uint8Array(length), reason: known.reason }
  grown.state.set(known.state)
  covers.set(id, grown)
  return grown
}

function checkRow(row: Row): void {
  const length = row.tokens.length
  if (row.mask.length !== length || row.logprobs.length !== length) {
    throw corrupt(row, `${length} tokens, ${row.mask.length} mask values, ${row.logprobs.length} logprobs`)
  }
  let at = 0
  for (const segment of row.segments) {
    if (segment.start !== at || segment.end < segment.start) throw corrupt(row, `its segments have a gap at ${at}`)
    at = segment.end
    if (segment.origin === 'sampled') continue
    if (row.mask.subarray(segment.start, segment.end).includes(1)) {
      throw corrupt(row, `tokens of origin ${segment.origin} are to be trained`)
    }
  }
  if (at !== length) throw corrupt(row, `its segments end at ${at}, its tokens at ${length}`)
  for (let i = 0; i < length; i += 1) {
    const isOther = row.offContext && Number.isNaN(row.logprobs[i])
    if (row.mask[i] === 1 && !Number.isFinite(row.logprobs[i]) && !isOther)
      throw corrupt(row, `token ${i} is trained without logprob`)
  }
}

function corrupt(row: Row, problem: string): PaddockError {
  return new PaddockError('STORE_CORRUPT', `Row ${row.id}: ${problem}`, { data: { row: row.id } })
}
