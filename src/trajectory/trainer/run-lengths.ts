import type { Id } from '../../core/index.ts'
import { settledAfter } from '../catalogue/index.ts'
import type { LengthBand, MemberLengths, RunLengths, SettledMember, TrainerReader } from '../contract/index.ts'
import type { Sql } from '../sql/index.ts'
import { RunTraining } from './run-training.ts'

/** Settled rounds that one query reads at most. */
const pageSize = 100
/** Shortest band, in tokens. */
const shortest = 64

interface Band {
  members: number
  usable: number
}

/** Lengths of a run's members, kept and brought up to date by the rounds that settled since: no query reads a whole run. */
export class KeptLengths {
  readonly #sql: Sql
  readonly #run: Id
  readonly #training: RunTraining
  #seq = 0
  readonly #sums = { kept: { members: 0, sum: 0, most: 0 }, censored: { members: 0, sum: 0, most: 0 } }
  readonly #bands = new Map<number, Band>()
  /** The bands of each rollout: one for each time that it was a member. */
  readonly #bandsOf = new Map<Id, number[]>()
  #turn: Promise<unknown> = Promise.resolve()

  constructor(sql: Sql, reader: TrainerReader, run: Id) {
    this.#sql = sql
    this.#run = run
    this.#training = new RunTraining(reader, run)
  }

  /** As it stands. Throws `STORE_CORRUPT`. */
  read(): Promise<RunLengths> {
    const done = this.#turn.then(async () => {
      await this.#readOn()
      await this.#training.advance(Infinity)
      return this.#lengths()
    })
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const told = await settledAfter(this.#sql, this.#run, { after: this.#seq, limit: pageSize })
      for (const { seq, settled } of told) {
        for (const member of settled.members) this.#add(member)
        this.#seq = seq
      }
      if (told.length < pageSize) return
    }
  }

  #add({ rolloutId, out, sampledTokens }: SettledMember): void {
    const sums = out === null ? this.#sums.kept : out === 'censored' ? this.#sums.censored : null
    if (sums !== null) {
      sums.members += 1
      sums.sum += sampledTokens
      sums.most = Math.max(sums.most, sampledTokens)
    }
    const upTo = 2 ** Math.ceil(Math.log2(Math.max(shortest, sampledTokens)))
    const band = this.#bands.get(upTo) ?? { members: 0, usable: 0 }
    this.#bands.set(upTo, band)
    band.members += 1
    if (out === null) band.usable += 1
    const own = this.#bandsOf.get(rolloutId)
    if (own === undefined) this.#bandsOf.set(rolloutId, [upTo])
    else own.push(upTo)
  }

  #lengths(): RunLengths {
    const trained = new Map<number, number>()
    for (const [rolloutId, bands] of this.#bandsOf) {
      if (!this.#training.isUsed(rolloutId)) continue
      for (const upTo of bands) trained.set(upTo, (trained.get(upTo) ?? 0) + 1)
    }
    return {
      kept: lengthsOf(this.#sums.kept),
      censored: lengthsOf(this.#sums.censored),
      byLength: [...this.#bands]
        .toSorted(([a], [b]) => a - b)
        .map(([upTo, band]): LengthBand => ({
          above: upTo === shortest ? 0 : upTo / 2,
          upTo,
          ...band,
          trained: trained.get(upTo) ?? 0,
        })),
    }
  }
}

function lengthsOf({ members, sum, most }: { members: number; sum: number; most: number }): MemberLengths {
  if (members === 0) return { members, meanTokens: null, mostTokens: null }
  return { members, meanTokens: sum / members, mostTokens: most }
}
