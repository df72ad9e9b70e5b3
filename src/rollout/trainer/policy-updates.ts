import { type Clock, type Id, isPaddockError, KeyedTurns, PaddockError, systemClock } from '../../core/index.ts'
import type { Adapter, PauseMode, PauseOutcome, Proxy, WeightsOutcome } from '../../proxy/index.ts'
import {
  type AnnouncedVersion,
  isAnnounced,
  type PolicyEvent,
  type RoundView,
  type Store,
  type StoreChange,
  trainedPolicies,
} from '../../trajectory/index.ts'
import { nobodyAnswered } from '../nodes/index.ts'
import type { EngineOverUpdates, OverNodes, Shelved } from '../shelving/index.ts'
import { liveWeights, requireOwnAdapter } from './adapters.ts'
import { askedPolicy } from './asked-policy.ts'
import { type AgedMember, agedMembers, carriedMembers } from './ages.ts'
import { type EvalVersion, type LiveWeights, openEvals } from './eval-run.ts'
import { type TrainerRun, trainerRunOf } from './run-config.ts'
import type { TrainerGroups } from './trainer-groups.ts'
import { untilChange } from './until-change.ts'

export interface PolicyOrder {
  /** Of several policies the one whose weights these are; null: the run trains one. */
  readonly policy: string | null
  readonly incarnation: number
  readonly ordinal: number
  /** The trainer's step whose update made the weights; null: the run starts with them. */
  readonly step: number | null
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
  readonly proxy: Pick<Proxy, 'engineOf' | 'sessionStats' | 'policies'>
  /** The engine of a policy; null: of the only one. Half-done rollouts of runs that say so are shelved by it. */
  readonly engineOf: (policy: string | null) => UpdatedEngine
  readonly groups: Pick<TrainerGroups, 'stopRollout'>
  readonly clock?: Clock
}

export type UpdatedEngine = Pick<EngineOverUpdates, 'pauseEngine' | 'resumeEngine' | 'updateWeights' | 'believeWeights'>

/**
 * Weights of a trainer, from the pause before they are moved to the moment at which they are live. What an update means to
 * groups under way is the run's staleness.
 */
export class PolicyUpdates {
  readonly #parts: PolicyParts
  readonly #clock: Clock
  /** The run whose trainer has the engine of a policy paused. */
  readonly #pausedFor = new Map<string | null, Id>()
  /** Of one policy one after the other: what is said next is of what became of the last. */
  readonly #turns = new KeyedTurns<string>()

  constructor(parts: PolicyParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
  }

  /**
   * Goes on with what an earlier process was told, before anybody can call: engines that do not name their weights still have
   * them, and where weights were being moved, or nobody knows which ones there are, nothing is sampled.
   */
  async resume(): Promise<void> {
    const { store, proxy } = this.#parts
    const owner = await store.trainer.policyOwner()
    if (owner === null) return
    const trained = trainedPolicies(await store.catalogue.run(owner))
    const known = proxy.policies.map(({ name }) => name)
    for (const policy of trained.length === 0 ? [null] : trained.filter((one) => known.includes(one))) {
      await this.#resume(owner, policy)
    }
  }

  async #resume(owner: Id, policy: string | null): Promise<void> {
    const { store, engineOf } = this.#parts
    const engine = engineOf(policy)
    const live = await this.#liveOf(owner, policy)
    if (live !== undefined) await engine.believeWeights(await liveWeights(store, owner, live.label))
    const last = await store.trainer.lastPolicy(owner, policy)
    if (last === null || !isPaused(last)) return
    // Nothing runs yet. What another process froze is frozen again, so that the end of the pause lets it go on.
    const mode = last.data['mode'] === 'keep' ? 'keep' : 'drain'
    await engine.pauseEngine({ mode, cache: 'clear', timeoutMs: 1 })
    this.#pausedFor.set(policy, owner)
  }

  /**
   * New calls wait and open ones are drained, kept or aborted when this resolves; evaluations have ended before. May be
   * repeated. Throws `FENCED`, `GATE`, `POLICY_OWNED`, `EVAL_RUNNING`, `ENGINE_PAUSED`, `PAUSE_TIMED_OUT`.
   */
  async pausing(runId: Id, order: PolicyOrder, signal: AbortSignal): Promise<PauseOutcome & Shelved & OverNodes> {
    const own = await this.#named(runId, order)
    return this.#afterEvals(runId, own, {
      may: () => this.#mayPause(runId, own),
      act: (timeoutMs) => this.#pausing(runId, { ...own, timeoutMs }),
      signal,
    })
  }

  /**
   * The weights that are live for a run, for `act`, which is done before anything else is said of weights. Null: nobody has
   * announced any. Throws `ENGINE_PAUSED` while weights are being moved.
   */
  async withLive<T>(runId: Id, act: (live: LiveWeights) => Promise<T>): Promise<T> {
    const { trainer, catalogue } = this.#parts.store
    const ownerNow = async () => (await trainer.policyOwner()) ?? runId
    const trained = trainedPolicies(await catalogue.run(await ownerNow()))
    const policies = trained.length === 0 ? [null] : trained
    return this.#inTurns(policies, async () => {
      const owner = await ownerNow()
      for (const policy of policies) {
        const last = await trainer.lastPolicy(owner, policy)
        if (last === null || !isPaused(last)) continue
        throw new PaddockError('ENGINE_PAUSED', `run ${owner} is moving weights`, {
          fix: 'Ask again once it has said which weights are live.',
        })
      }
      const liveOf = async (policy: string | null): Promise<EvalVersion | null> => {
        const live = await this.#liveOf(owner, policy)
        return live === undefined ? null : { ordinal: live.ordinal, label: live.label }
      }
      if (trained.length === 0) return act({ version: await liveOf(null) })
      const all = await Promise.all(trained.map(async (name) => [name, await liveOf(name)] as const))
      const version = all.length === 1 ? (all[0]?.[1] ?? null) : null
      return act({ version, versions: Object.fromEntries(all) })
    })
  }

  /** While nothing is said of the weights of any of these policies. */
  #inTurns<T>([policy, ...others]: readonly (string | null)[], work: () => Promise<T>): Promise<T> {
    if (policy === undefined) return work()
    return this.#turns.take(policy ?? '', () => this.#inTurns(others, work))
  }

  /** Does something for the run that moves the weights, while nothing is said of them. Throws `FENCED`, `POLICY_OWNED`. */
  asOwner<T>(runId: Id, incarnation: number, act: () => Promise<T>): Promise<T> {
    return this.#turns.take('', async () => {
      await this.#own(runId, incarnation)
      return act()
    })
  }

  /**
   * The weights are in the engine: it goes on with them. An adapter needs no pause: the replicas get it where it has a path, new calls run
   * under it, and gate and evaluations have let it before. May be repeated. Throws `FENCED`, `POLICY_OWNED`, `WEIGHTS_REFUSED`,
   * `STORE_CONFLICT` for an adapter of other weights, and of an adapter `GATE`, `EVAL_RUNNING`.
   */
  async live(runId: Id, order: PolicyOrder, signal: AbortSignal): Promise<PolicyLive> {
    const own = await this.#named(runId, order)
    if (own.adapter === null) {
      requireOwnEngine(this.#parts.proxy, own.policy)
      return this.#turns.take(own.policy ?? '', () => this.#live(runId, own))
    }
    return this.#afterEvals(runId, own, {
      may: () => this.#mayMove(runId, own),
      act: async (timeoutMs) => {
        await this.#mayMove(runId, own)
        return this.#live(runId, { ...own, timeoutMs })
      },
      signal,
    })
  }

  /**
   * The weights were not moved, or not wholly. The engine goes on where each replica says itself that it has the old ones;
   * else it stays paused. Throws `FENCED`, `POLICY_OWNED`.
   */
  async failed(runId: Id, order: PolicyOrder): Promise<PolicyFailed> {
    const own = await this.#named(runId, order)
    return this.#turns.take(own.policy ?? '', () => this.#failed(runId, own))
  }

  /** With the policy that it is of. Throws `POLICY_UNKNOWN`, `POLICY_UNNAMED`. */
  async #named(runId: Id, order: PolicyOrder): Promise<PolicyOrder> {
    const policy = askedPolicy(await this.#parts.store.catalogue.run(runId), order.policy)
    // One that the configuration no longer has.
    this.#parts.proxy.engineOf(policy)
    return { ...order, policy }
  }

  /** The weights of a policy that were announced last, of its run. */
  async #liveOf(runId: Id, policy: string | null): Promise<AnnouncedVersion | undefined> {
    const versions = await this.#parts.store.trainer.versions(runId)
    return versions.findLast((one) => !one.gone && (one.policy ?? null) === policy)
  }

  /** Acts when it is its turn and no evaluation is under way; `may` is asked before it waits for one. */
  async #afterEvals<T>(
    runId: Id,
    { timeoutMs, policy }: PolicyOrder,
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
      if (!this.#isHeldFor(runId, policy) && (await openEvals(this.#parts.store.catalogue)).length > 0) {
        await may()
        await this.#evalsEnded(left(), signal)
      }
      const outcome = await this.#turns.take(policy ?? '', async () => {
        // One may have been opened before it was this one's turn.
        const isFree = this.#isHeldFor(runId, policy) || (await openEvals(this.#parts.store.catalogue)).length === 0
        return isFree ? { done: await act(left()) } : null
      })
      if (outcome !== null) return outcome.done
    }
  }

  async #mayPause(runId: Id, order: PolicyOrder): Promise<void> {
    requireOwnEngine(this.#parts.proxy, order.policy)
    await this.#mayMove(runId, order)
  }

  async #mayMove(runId: Id, { incarnation, ordinal, policy }: PolicyOrder): Promise<void> {
    const { trainer } = this.#parts.store
    const run = await this.#own(runId, incarnation)
    if (run.staleness.mode !== 'gate' || (await trainer.passedGate(runId, policy))) return
    const tooOld = await this.#tooOld(runId, run, { ordinal, policy })
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
    const { store, engineOf } = this.#parts
    const { policy, incarnation, ordinal, mode, timeoutMs } = order
    await this.#mayPause(runId, order)
    const outcome = this.#isHeldFor(runId, policy)
      ? { mode, interrupted: 0, drained: 0, kept: 0, durationMs: 0, shelved: 0, nodes: nobodyAnswered }
      : await engineOf(policy).pauseEngine({ mode, cache: 'clear', timeoutMs })
    this.#pausedFor.set(policy, runId)
    const last = await store.trainer.lastPolicy(runId, policy)
    const said = { version: ordinal, incarnation, mode, ...naming(policy) }
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
    const { engineOf, store } = this.#parts
    const { policy, incarnation, ordinal, step, mode, timeoutMs, requests, adapter } = order
    const run = await this.#own(runId, incarnation)
    const label = order.label ?? (await this.#labelOf(runId, order))
    await requireOwnAdapter(store, runId, { label, adapter })
    // A refusal by the catalogue comes before the engine has them.
    isAnnounced(await store.trainer.versions(runId), { ordinal, label, step, policy })
    const outcome = await engineOf(policy).updateWeights({
      version: label,
      mode,
      cache: 'clear',
      timeoutMs,
      requests,
      ...(adapter === null ? {} : { adapter }),
    })
    await store.trainer.announce(runId, { incarnation, ordinal, label, step, adapter, policy })
    const stopped = await this.#enforce(runId, run, { ordinal, policy })
    await this.#goOn(policy)
    return { ...outcome, label, stopped }
  }

  /** Weights that are announced again, as a trainer does that goes on from a checkpoint, keep the name they have. */
  async #labelOf(runId: Id, { policy, ordinal, incarnation, adapter }: PolicyOrder): Promise<string> {
    const known = (await this.#parts.store.trainer.versions(runId)).find(
      (one) => one.ordinal === ordinal && !one.gone && (one.policy ?? null) === policy,
    )
    const number = policy === null ? String(ordinal) : `${policy}-${ordinal}`
    if (known === undefined && adapter !== null) return adapter.name
    // After going back a number may come again, and then it is of other weights.
    return known?.label ?? (incarnation === 1 ? number : `${number}@${incarnation}`)
  }

  async #failed(runId: Id, { policy, incarnation, ordinal, timeoutMs }: PolicyOrder): Promise<PolicyFailed> {
    const { engineOf, proxy, store } = this.#parts
    await this.#own(runId, incarnation)
    const before = (await this.#liveOf(runId, policy))?.label ?? null
    const side = proxy.engineOf(policy)
    const replicas = await side.engineWeights()
    if (before !== null && replicas.every(({ told, weightVersion }) => told && weightVersion === before)) {
      const last = await store.trainer.lastPolicy(runId, policy)
      if (last !== null && isPaused(last))
        await store.trainer.tell(runId, 'policy_restored', { label: before, incarnation, ...naming(policy) })
      await this.#goOn(policy)
      return { restored: true }
    }
    if (side.engineStatus().paused === null) {
      await engineOf(policy).pauseEngine({ mode: 'abort-resubmit', cache: 'clear', timeoutMs })
    }
    this.#pausedFor.set(policy, runId)
    const said = { why: 'unknown_weights', version: ordinal, incarnation, ...naming(policy) }
    await store.trainer.tell(runId, 'policy_halted', said)
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

  #isHeldFor(runId: Id, policy: string | null): boolean {
    return this.#pausedFor.get(policy) === runId && this.#isPausedNow(policy)
  }

  #isPausedNow(policy: string | null): boolean {
    return this.#parts.proxy.engineOf(policy).engineStatus().paused !== null
  }

  async #goOn(policy: string | null): Promise<void> {
    if (this.#isPausedNow(policy)) await this.#parts.engineOf(policy).resumeEngine()
    this.#pausedFor.delete(policy)
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
  async #tooOld(
    runId: Id,
    { staleness }: TrainerRun,
    { ordinal, policy }: Pick<PolicyOrder, 'ordinal' | 'policy'>,
  ): Promise<readonly AgedMember[]> {
    if (staleness.mode === 'report') return []
    const { store } = this.#parts
    const versions = (await store.trainer.versions(runId)).filter((one) => (one.policy ?? null) === policy)
    const source = {
      policy,
      recorder: store.recorder,
      catalogue: store.catalogue,
      isSampling: (id: Id) => this.#isSampling(id),
    }
    const members = await agedMembers(source, { waiting: await this.#waiting(runId, policy), versions })
    const carried = await carriedMembers(source, { groupIds: await store.trainer.carryingGroups(runId), versions })
    return [...members, ...carried].filter(({ oldest }) => ordinal - oldest > staleness.max)
  }

  /** Rounds that go on, or that the trainer has not disposed of. */
  async #waiting(runId: Id, policy: string | null): Promise<readonly RoundView[]> {
    const { catalogue, trainer } = this.#parts.store
    const open = await trainer.openRounds(runId, policy)
    const rounds: RoundView[] = []
    for (const { groupId, round } of open) {
      const found = (await catalogue.rounds(groupId)).find((one) => one.round === round)
      if (found !== undefined) rounds.push(found)
    }
    return rounds
  }

  /** What the run's staleness says of weights that are live. Resolves with the rollouts that were stopped. */
  async #enforce(runId: Id, run: TrainerRun, now: Pick<PolicyOrder, 'ordinal' | 'policy'>): Promise<readonly Id[]> {
    const { store, groups } = this.#parts
    const { ordinal, policy } = now
    const tooOld = await this.#tooOld(runId, run, now)
    if (tooOld.length === 0) return []
    if (run.staleness.mode === 'gate') {
      if (!(await store.trainer.passedGate(runId, policy))) {
        await store.trainer.tell(runId, 'gate_passed', {
          version: ordinal,
          groups: groupsOf(tooOld),
          ...naming(policy),
        })
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

/** How an event names the policy that it is of. */
function naming(policy: string | null): { readonly policy?: string } {
  return policy === null ? {} : { policy }
}

/** Throws `POLICY_SHARED` where others would be moved with it: they share its engine. */
export function requireOwnEngine({ policies }: Pick<Proxy, 'policies'>, policy: string | null): void {
  const own = policies.find(({ name }) => name === policy)
  if (own?.isShared !== true) return
  const others = policies.flatMap(({ name, isShared }) => (isShared && name !== policy ? [name] : []))
  throw new PaddockError('POLICY_SHARED', `the policy ${own.name} shares its engine with ${others.join(', ')}`, {
    data: { policy: own.name, others },
  })
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
