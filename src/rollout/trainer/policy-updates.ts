import { type Clock, type Id, isPaddockError, PaddockError, systemClock, Turns } from '../../core/index.ts'
import type { Adapter, PauseMode, PauseOutcome, Proxy, WeightsOutcome } from '../../proxy/index.ts'
import type { PolicyEvent, RoundView, Store, StoreChange } from '../../trajectory/index.ts'
import { nobodyAnswered } from '../nodes/index.ts'
import type { EngineOverUpdates, OverNodes, Shelved } from '../shelving/index.ts'
import { liveWeights, requireOwnAdapter } from './adapters.ts'
import { type AgedMember, agedMembers, carriedMembers } from './ages.ts'
import { type EvalVersion, openEvals } from './eval-run.ts'
import { type TrainerRun, trainerRunOf } from './run-config.ts'
import type { TrainerGroups } from './trainer-groups.ts'
import { untilChange } from './until-change.ts'

export interface PolicyOrder {
  readonly incarnation: number
  readonly ordinal: number
  /** What the engine is to call these weights. Null: as it does already, else by number. */
  readonly label: string | null
  readonly mode: PauseMode
  readonly timeoutMs: number
  /** Posted to each replica when the weights go live. */
  readonly requests: readonly { readonly path: string; readonly body: unknown }[]
  /** They are a LoRA adapter. Null: the engine's own. */
  readonly adapter: Adapter | null
}

export type PolicyLive = WeightsOutcome &
  Shelved &
  OverNodes & {
    readonly label: string
    /** Rollouts that were stopped because they had become too old. */
    readonly stopped: readonly Id[]
  }

/** What became of an update that was given up. */
export type PolicyFailed =
  | { readonly restored: true }
  | { readonly restored: false; readonly halted: 'unknown_weights' }

export interface PolicyParts {
  readonly store: Store
  readonly proxy: Pick<Proxy, 'engineStatus' | 'sessionStats' | 'engineWeights'>
  /** Half-done rollouts of runs that say so are shelved by it. */
  readonly engine: Pick<EngineOverUpdates, 'pauseEngine' | 'resumeEngine' | 'updateWeights' | 'believeWeights'>
  readonly groups: Pick<TrainerGroups, 'stopRollout'>
  readonly clock?: Clock
}

/**
 * Weights of a trainer, from the pause before they are moved to the moment at which they are live. What an update means to
 * groups under way is the run's staleness.
 */
export class PolicyUpdates {
  readonly #parts: PolicyParts
  readonly #clock: Clock
  /** The run whose trainer has the engine paused. */
  #pausedFor: Id | null = null
  /** One after the other: what is said next is of what became of the last. */
  readonly #turns = new Turns()

  constructor(parts: PolicyParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
  }

  /**
   * Goes on with what an earlier process was told, before anybody can call: engines that do not name their weights still have
   * them, and where weights were being moved, or nobody knows which ones there are, nothing is sampled.
   */
  async resume(): Promise<void> {
    const { store, engine } = this.#parts
    const owner = await store.trainer.policyOwner()
    if (owner === null) return
    const live = (await store.trainer.versions(owner)).findLast(({ gone }) => !gone)
    if (live !== undefined) await engine.believeWeights(await liveWeights(store, owner, live.label))
    const last = await store.trainer.lastPolicy(owner)
    if (last === null || !isPaused(last)) return
    // Nothing runs yet. What another process froze is frozen again, so that the end of the pause lets it go on.
    const mode = last.data['mode'] === 'keep' ? 'keep' : 'drain'
    await engine.pauseEngine({ mode, cache: 'clear', timeoutMs: 1 })
    this.#pausedFor = owner
  }

  /**
   * New calls wait and open ones are drained, kept or aborted when this resolves; evaluations have ended before. May be
   * repeated. Throws `FENCED`, `GATE`, `POLICY_OWNED`, `EVAL_RUNNING`, `ENGINE_PAUSED`, `PAUSE_TIMED_OUT`.
   */
  async pausing(runId: Id, order: PolicyOrder, signal: AbortSignal): Promise<PauseOutcome & Shelved & OverNodes> {
    return this.#afterEvals(runId, order, {
      may: () => this.#mayMove(runId, order),
      act: (timeoutMs) => this.#pausing(runId, { ...order, timeoutMs }),
      signal,
    })
  }

  /**
   * The weights that are live for a run, for `act`, which is done before anything else is said of weights. Null: nobody has
   * announced any. Throws `ENGINE_PAUSED` while weights are being moved.
   */
  withLive<T>(runId: Id, act: (live: EvalVersion | null) => Promise<T>): Promise<T> {
    return this.#turns.take(async () => {
      const { trainer } = this.#parts.store
      const owner = (await trainer.policyOwner()) ?? runId
      const last = await trainer.lastPolicy(owner)
      if (last !== null && isPaused(last)) {
        throw new PaddockError('ENGINE_PAUSED', `run ${owner} is moving weights`, {
          fix: 'Ask again once it has said which weights are live.',
        })
      }
      const live = (await trainer.versions(owner)).findLast(({ gone }) => !gone)
      return act(live === undefined ? null : { ordinal: live.ordinal, label: live.label })
    })
  }

  /** Does something for the run that moves the weights, while nothing is said of them. Throws `FENCED`, `POLICY_OWNED`. */
  asOwner<T>(runId: Id, incarnation: number, act: () => Promise<T>): Promise<T> {
    return this.#turns.take(async () => {
      await this.#own(runId, incarnation)
      return act()
    })
  }

  /**
   * The weights are in the engine: it goes on with them. An adapter needs no pause: the replicas get it where it has a path, new calls run
   * under it, and gate and evaluations have let it before. May be repeated. Throws `FENCED`, `POLICY_OWNED`, `WEIGHTS_REFUSED`,
   * `STORE_CONFLICT` for an adapter of other weights, and of an adapter `GATE`, `EVAL_RUNNING`.
   */
  live(runId: Id, order: PolicyOrder, signal: AbortSignal): Promise<PolicyLive> {
    if (order.adapter === null) return this.#turns.take(() => this.#live(runId, order))
    return this.#afterEvals(runId, order, {
      may: () => this.#mayMove(runId, order),
      act: async (timeoutMs) => {
        await this.#mayMove(runId, order)
        return this.#live(runId, { ...order, timeoutMs })
      },
      signal,
    })
  }

  /**
   * The weights were not moved, or not wholly. The engine goes on where each replica says itself that it has the old ones;
   * else it stays paused. Throws `FENCED`, `POLICY_OWNED`.
   */
  failed(runId: Id, order: PolicyOrder): Promise<PolicyFailed> {
    return this.#turns.take(() => this.#failed(runId, order))
  }

  /** Acts when it is its turn and no evaluation is under way; `may` is asked before it waits for one. */
  async #afterEvals<T>(
    runId: Id,
    { timeoutMs }: PolicyOrder,
    {
      may,
      act,
      signal,
    }: {
      readonly may: () => Promise<void>
      readonly act: (leftMs: number) => Promise<T>
      readonly signal: AbortSignal
    },
  ): Promise<T> {
    const ends = this.#clock.now() + timeoutMs
    const left = (): number => Math.max(1, ends - this.#clock.now())
    for (;;) {
      if (!this.#isHeldFor(runId) && (await openEvals(this.#parts.store.catalogue)).length > 0) {
        await may()
        await this.#evalsEnded(left(), signal)
      }
      const outcome = await this.#turns.take(async () => {
        // One may have been opened before it was this one's turn.
        const isFree = this.#isHeldFor(runId) || (await openEvals(this.#parts.store.catalogue)).length === 0
        return isFree ? { done: await act(left()) } : null
      })
      if (outcome !== null) return outcome.done
    }
  }

  async #mayMove(runId: Id, { incarnation, ordinal }: PolicyOrder): Promise<void> {
    const { trainer } = this.#parts.store
    const run = await this.#own(runId, incarnation)
    if (run.staleness.mode !== 'gate' || (await trainer.passedGate(runId))) return
    const tooOld = await this.#tooOld(runId, run, ordinal)
    if (tooOld.length > 0) throw gateError(ordinal, run, tooOld)
  }

  async #evalsEnded(waitMs: number, signal: AbortSignal): Promise<void> {
    const { changes, catalogue } = this.#parts.store
    const concerns = ({ kind }: StoreChange): boolean => kind !== 'rollout'
    let open: readonly Id[] = []
    const ended = await untilChange({ changes, clock: this.#clock, waitMs, signal, concerns }, async () => {
      open = await openEvals(catalogue)
      return open.length === 0 ? true : null
    })
    if (ended !== null) return
    throw new PaddockError('EVAL_RUNNING', `evaluations are under way: ${open.join(', ')}`, { data: { evals: open } })
  }

  async #pausing(runId: Id, order: PolicyOrder): Promise<PauseOutcome & Shelved & OverNodes> {
    const { store, engine } = this.#parts
    const { incarnation, ordinal, mode, timeoutMs } = order
    await this.#mayMove(runId, order)
    const outcome = this.#isHeldFor(runId)
      ? { mode, interrupted: 0, drained: 0, kept: 0, durationMs: 0, shelved: 0, nodes: nobodyAnswered }
      : await engine.pauseEngine({ mode, cache: 'clear', timeoutMs })
    this.#pausedFor = runId
    const last = await store.trainer.lastPolicy(runId)
    const said = { version: ordinal, incarnation, mode }
    if (
      last?.kind !== 'policy_pausing' ||
      last.data['version'] !== ordinal ||
      last.data['incarnation'] !== incarnation
    ) {
      await store.trainer.tell(runId, 'policy_pausing', said)
    }
    return outcome
  }

  async #live(runId: Id, order: PolicyOrder): Promise<PolicyLive> {
    const { engine, store } = this.#parts
    const { incarnation, ordinal, mode, timeoutMs, requests, adapter } = order
    const run = await this.#own(runId, incarnation)
    const label = order.label ?? (await this.#labelOf(runId, order))
    await requireOwnAdapter(store, runId, { label, adapter })
    const outcome = await engine.updateWeights({
      version: label,
      mode,
      cache: 'clear',
      timeoutMs,
      requests,
      ...(adapter === null ? {} : { adapter }),
    })
    await store.trainer.announce(runId, { incarnation, ordinal, label, adapter })
    const stopped = await this.#enforce(runId, run, ordinal)
    await this.#goOn()
    return { ...outcome, label, stopped }
  }

  /** Weights that are announced again, as a trainer does that goes on from a checkpoint, keep the name they have. */
  async #labelOf(runId: Id, { ordinal, incarnation, adapter }: PolicyOrder): Promise<string> {
    const known = (await this.#parts.store.trainer.versions(runId)).find((one) => one.ordinal === ordinal && !one.gone)
    if (known === undefined && adapter !== null) return adapter.name
    // After going back a number may come again, and then it is of other weights.
    return known?.label ?? (incarnation === 1 ? String(ordinal) : `${ordinal}@${incarnation}`)
  }

  async #failed(runId: Id, { incarnation, ordinal, timeoutMs }: PolicyOrder): Promise<PolicyFailed> {
    const { engine, proxy, store } = this.#parts
    await this.#own(runId, incarnation)
    const before = (await store.trainer.versions(runId)).findLast(({ gone }) => !gone)?.label ?? null
    const replicas = await proxy.engineWeights()
    if (before !== null && replicas.every(({ told, weightVersion }) => told && weightVersion === before)) {
      const last = await store.trainer.lastPolicy(runId)
      if (last !== null && isPaused(last))
        await store.trainer.tell(runId, 'policy_restored', { label: before, incarnation })
      await this.#goOn()
      return { restored: true }
    }
    if (proxy.engineStatus().paused === null) {
      await engine.pauseEngine({ mode: 'abort-resubmit', cache: 'clear', timeoutMs })
    }
    this.#pausedFor = runId
    await store.trainer.tell(runId, 'policy_halted', { why: 'unknown_weights', version: ordinal, incarnation })
    return { restored: false, halted: 'unknown_weights' }
  }

  #isSampling(sessionId: Id): boolean {
    try {
      return this.#parts.proxy.sessionStats(sessionId).inFlight > 0
    } catch (error) {
      if (isPaddockError(error) && error.code === 'SESSION_UNKNOWN') return false
      throw error
    }
  }

  #isHeldFor(runId: Id): boolean {
    return this.#pausedFor === runId && this.#parts.proxy.engineStatus().paused !== null
  }

  async #goOn(): Promise<void> {
    if (this.#parts.proxy.engineStatus().paused !== null) await this.#parts.engine.resumeEngine()
    this.#pausedFor = null
  }

  async #own(runId: Id, incarnation: number): Promise<TrainerRun> {
    const { trainer, catalogue } = this.#parts.store
    await trainer.requireIncarnation(runId, incarnation)
    const owner = await trainer.policyOwner()
    if (owner !== null && owner !== runId) {
      throw new PaddockError(
        'POLICY_OWNED',
        `run ${owner} announces the weights of this engine, and it is not closed`,
        {
          fix: `Close it: POST /rl/v1/runs/${owner}/close.`,
        },
      )
    }
    return trainerRunOf(await catalogue.run(runId))
  }

  /** Members that weights of this number would make older than the run allows. */
  async #tooOld(runId: Id, { staleness }: TrainerRun, ordinal: number): Promise<readonly AgedMember[]> {
    if (staleness.mode === 'report') return []
    const { store } = this.#parts
    const versions = await store.trainer.versions(runId)
    const source = {
      recorder: store.recorder,
      catalogue: store.catalogue,
      isSampling: (id: Id) => this.#isSampling(id),
    }
    const members = await agedMembers(source, { waiting: await this.#waiting(runId), versions })
    const carried = await carriedMembers(source, { groupIds: await store.trainer.carryingGroups(runId), versions })
    return [...members, ...carried].filter(({ oldest }) => ordinal - oldest > staleness.max)
  }

  /** Rounds that go on, or that the trainer has not disposed of. */
  async #waiting(runId: Id): Promise<readonly RoundView[]> {
    const { catalogue, trainer } = this.#parts.store
    const open = await trainer.openRounds(runId)
    const rounds: RoundView[] = []
    for (const { groupId, round } of open) {
      const found = (await catalogue.rounds(groupId)).find((one) => one.round === round)
      if (found !== undefined) rounds.push(found)
    }
    return rounds
  }

  /** What the run's staleness says of weights that are live. Resolves with the rollouts that were stopped. */
  async #enforce(runId: Id, run: TrainerRun, ordinal: number): Promise<readonly Id[]> {
    const { store, groups } = this.#parts
    const tooOld = await this.#tooOld(runId, run, ordinal)
    if (tooOld.length === 0) return []
    if (run.staleness.mode === 'gate') {
      if (!(await store.trainer.passedGate(runId))) {
        await store.trainer.tell(runId, 'gate_passed', { version: ordinal, groups: groupsOf(tooOld) })
      }
      return []
    }
    const stopped: Id[] = []
    for (const { rolloutId, running, oldest } of tooOld) {
      if (!running) continue
      const detail = `stale: sampled under weights ${oldest}, and ${ordinal} are live`
      await groups.stopRollout(rolloutId, detail)
      stopped.push(rolloutId)
    }
    return stopped
  }
}

/** Whether nothing is sampled since something was said of weights. */
export function isPaused({ kind }: PolicyEvent): boolean {
  return kind === 'policy_pausing' || kind === 'policy_halted'
}

function groupsOf(members: readonly AgedMember[]): readonly Id[] {
  return [...new Set(members.map(({ groupId }) => groupId))]
}

function gateError(ordinal: number, { staleness }: TrainerRun, tooOld: readonly AgedMember[]): PaddockError {
  const blocking = groupsOf(tooOld)
  return new PaddockError(
    'GATE',
    `weights ${ordinal} would make ${blocking.length} groups under way older than ${staleness.max} versions`,
    { data: { blocking } },
  )
}
