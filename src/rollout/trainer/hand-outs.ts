import { type Clock, type Id, type IdMaker, newId, PaddockError, systemClock } from '../../core/index.ts'
import {
  draftRound,
  type DraftRound,
  filteredRound,
  type HandedRound,
  handedRound,
  type HandoutRules,
  type RoundClaim,
  rowsToOwn,
  type SpanReading,
  type Store,
} from '../../trajectory/index.ts'
import { askedPolicy, knownPolicy } from './asked-policy.ts'
import { requireNoEval } from './eval-run.ts'
import type { NullLimits } from '../group/null-limit.ts'
import type { FindSelector } from './feed.ts'
import type { RoundScores } from './round-scores.ts'
import { trainerRunOf } from './run-config.ts'
import { untilChange } from './until-change.ts'

export interface ClaimOrder {
  /** Rounds of this policy alone; null: of any. */
  readonly policy: string | null
  readonly incarnation: number
  readonly consumer: string
  readonly maxGroups: number
  readonly leaseMs: number
  /** How long to wait where nothing has settled. */
  readonly waitMs: number
  readonly signal: AbortSignal
}

export interface RowOrder {
  /** Null: to read only. */
  readonly claimId: Id | null
  /** Of what is only read: whose rows. Null: the run trains one policy. */
  readonly policy: string | null
  /** Whether it is told whose the tokens of each row are. */
  readonly spans: boolean
}

export interface HandOutParts {
  readonly store: Pick<Store, 'recorder' | 'catalogue' | 'blobs' | 'trainer' | 'changes'>
  readonly scores: Pick<RoundScores, 'fill'>
  readonly findSelector: FindSelector
  readonly nullLimits: NullLimits
  readonly spanReading: SpanReading
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/** Settled rounds as trainers take them. */
export class HandOuts {
  readonly #store: HandOutParts['store']
  readonly #scores: HandOutParts['scores']
  readonly #findSelector: FindSelector
  readonly #nullLimits: NullLimits
  readonly #spanReading: SpanReading
  readonly #clock: Clock
  readonly #newId: IdMaker

  constructor(parts: HandOutParts) {
    const { store, scores, findSelector, nullLimits, spanReading, clock = systemClock, newId: id = newId } = parts
    this.#nullLimits = nullLimits
    this.#spanReading = spanReading
    this.#store = store
    this.#scores = scores
    this.#findSelector = findSelector
    this.#clock = clock
    this.#newId = id
  }

  /** Settled rounds that nobody has, oldest first; none where there is none within `waitMs`. Throws `FENCED`, `RUN_IS_EVAL`, `POLICY_UNKNOWN`, and `RUN_NULL_SHARE` where a stopped run has none. */
  async claim(runId: Id, { waitMs, signal, ...asked }: ClaimOrder): Promise<readonly RoundClaim[]> {
    const { catalogue, trainer, changes } = this.#store
    const run = await catalogue.run(runId)
    requireNoEval(run)
    if (asked.policy !== null) knownPolicy(run, asked.policy)
    const ids = Array.from({ length: asked.maxGroups }, () => this.#newId())
    const found = await untilChange(
      {
        changes,
        clock: this.#clock,
        waitMs,
        signal,
        concerns: (change) => change.kind === 'round' && change.runId === runId,
        next: () => trainer.nextExpiry(runId),
      },
      async () => {
        const claims = await trainer.claim(runId, { ...asked, ids })
        if (claims.length > 0) return claims
        await this.#nullLimits.require(runId)
        return null
      },
    )
    // A run may stop without a round that settles by it.
    if (found === null) await this.#nullLimits.require(runId)
    return found ?? []
  }

  /**
   * The rows of a settled round. With a claim, what it trains is owned by it from now on; without one, nothing is. Throws
   * `NOT_FOUND`, `CLAIM_OVER`, `SELECTOR_*`.
   */
  async rows(groupId: Id, round: number, { claimId, policy, spans }: RowOrder): Promise<HandedRound> {
    const reading = spans ? this.#spanReading : null
    const rows = await (claimId === null
      ? this.#toRead(groupId, round, { policy, reading })
      : this.#toTrain(groupId, round, { claimId, reading }))
    const { score = {} } = trainerRunOf(await this.#store.catalogue.run(rows.run_id))
    return this.#scores.fill(rows, score)
  }

  async #toTrain(
    groupId: Id,
    round: number,
    { claimId, reading }: { readonly claimId: Id; readonly reading: SpanReading | null },
  ): Promise<HandedRound> {
    const { trainer } = this.#store
    const claim = await trainer.claimed(claimId)
    if (claim.groupId !== groupId || claim.round !== round) {
      throw new PaddockError('NOT_FOUND', `claim ${claimId} is of round ${claim.round} of group ${claim.groupId}`)
    }
    const rules = await this.#rules(claim.runId, { policy: claim.policy, liveOrdinal: claim.liveOrdinal })
    const draft = await this.#filtered(claim.runId, await draftRound(this.#store, claim.settled, rules, reading))
    const notOwned = await trainer.handOut(claimId, rowsToOwn(draft))
    return handedRound(draft, { id: claimId, notOwned })
  }

  async #toRead(
    groupId: Id,
    round: number,
    { policy: asked, reading }: { readonly policy: string | null; readonly reading: SpanReading | null },
  ): Promise<HandedRound> {
    const found = (await this.#store.catalogue.rounds(groupId)).find((one) => one.round === round)
    if (found === undefined) throw new PaddockError('NOT_FOUND', `group ${groupId} has no round ${round}`)
    if (found.settled === null) {
      throw new PaddockError('ROUND_OPEN', `round ${round} of group ${groupId} has not settled`, {
        fix: 'Wait for it: claims and events tell when a round has settled.',
      })
    }
    const policy = askedPolicy(await this.#store.catalogue.run(found.runId), asked)
    const versions = await this.#store.trainer.versions(found.runId)
    const live = versions.findLast((one) => !one.gone && (one.policy ?? null) === policy)?.ordinal ?? null
    const rules = await this.#rules(found.runId, { policy, liveOrdinal: live })
    const draft = await this.#filtered(found.runId, await draftRound(this.#store, found.settled, rules, reading))
    return handedRound(draft, { id: null, notOwned: { segmentIds: [], usedRows: [] } })
  }

  /** As the run's selector leaves it. Throws `SELECTOR_*`. */
  async #filtered(runId: Id, draft: DraftRound): Promise<DraftRound> {
    const { catalogue } = this.#store
    const { select } = trainerRunOf(await catalogue.run(runId))
    if (select === undefined) return draft
    return filteredRound(draft, await this.#findSelector(select, 'select'), catalogue)
  }

  async #rules(runId: Id, of: Pick<HandoutRules, 'policy' | 'liveOrdinal'>): Promise<HandoutRules> {
    const { rowMode, mixed, staleness, constrained, trusts = [] } = trainerRunOf(await this.#store.catalogue.run(runId))
    return {
      rowMode,
      trainMixed: mixed === 'train',
      trainConstrained: constrained === 'train',
      trusts,
      versions: await this.#store.trainer.versions(runId),
      ...of,
      maxAge: staleness.mode === 'cancel' ? staleness.max : null,
    }
  }
}
