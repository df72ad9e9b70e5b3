import { type Clock, type Id, type IdMaker, KeyedTurns, newId, PaddockError, systemClock } from '../../core/index.ts'
import {
  type ClaimRequest,
  type Lease,
  type LeaseKey,
  type NodeSessionView,
  type PackedRollout,
  packRollout,
  type RolloutView,
  type Store,
  takeInRollout,
} from '../../trajectory/index.ts'
import type {
  HandedRollout,
  HandInResult,
  NodeJob,
  NodeOrder,
  NodesAnswered,
  StopJob,
  ToldWeights,
} from './contract.ts'
import { isUnverified } from '../work.ts'
import { nameSeparator, nodeNameOf, type NodeSaid, NodeWeights } from './node-weights.ts'
import { listTaskFiles, type TaskFiles, taskFileAt } from './task-files.ts'
import { WaitingClaims } from './waiting-claims.ts'

/** What a claim of a node came to. */
export interface ClaimedForNode {
  readonly jobs: readonly Omit<NodeJob, 'order'>[]
  /** Some of what was claimed is done in this process: the same claim would find that again, and another one may find more. */
  readonly someHere: boolean
}

/** A run at work whose jobs may go to nodes. */
export interface NodeRun {
  readonly runId: Id
  /** Where its tasks are. */
  readonly tasks: string
  order(): Promise<NodeOrder>
  claim(session: Id, request: ClaimRequest): Promise<ClaimedForNode>
  /** Whether a job is over with this rollout, or tried again. */
  next(jobId: Id, rollout: RolloutView, fault: string | null): 'done' | 'again'
  /** Rollouts whose records members of a group go on from. */
  parents(groupId: Id): Promise<readonly Id[]>
  /** A rollout of it was handed in. */
  ended(rolloutId: Id, next: 'done' | 'again'): Promise<void>
  /** A job was given back, and why. */
  note(line: string): void
}

/** What of a run goes to nodes, and by whom. */
export interface NodesOfRun {
  readonly jobs: NodeJobs
  /** Where its tasks are. */
  readonly tasks: string
  /** The same for all of its jobs. */
  readonly order: Omit<NodeOrder, 'run'>
}

/** What a node asks for jobs with, beside what the queue is asked. */
export interface NodeClaim extends ClaimRequest {
  /** Runs that the node cannot do. */
  readonly without: readonly Id[]
  /** What the node was told last of the engine, and has done. */
  readonly mark: string
  /** Has handed in again what this process's catalogue may have lost. Until then it is given nothing. */
  readonly isWhole?: boolean
  /** So long it waits for the first job. Default: not at all. */
  readonly waitMs?: number
  /** Nobody waits for the answer any more. */
  readonly signal?: AbortSignal
}

/** Hand-ins since the start, by what came of them. */
export interface HandInTally {
  accepted: number
  repeated: number
  refused: number
}

export interface NodeJobsParts {
  readonly store: Pick<Store, 'queue' | 'recorder' | 'catalogue' | 'blobs'>
  /** Time without a beat after which a node's jobs may go to another. */
  readonly leaseMs: number
  readonly onFailure: (error: unknown) => void
  /** A node gave a verification back, and why. */
  readonly onGivenBack?: (node: string, why: string) => void
  /** Nodes have answered to what they were told of weights, or were passed over. */
  readonly onAnswered?: (answered: NodesAnswered) => void
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * The coordinator's side of nodes: sessions, claims over all runs at work, hand-ins. Nothing is kept here that the queue does not have,
 * but which runs are at work. Claims and hand-ins of one run take turns, so nothing is claimed while what was made of it is ingested.
 */
export class NodeJobs {
  readonly leaseMs: number
  readonly handIns: HandInTally = { accepted: 0, repeated: 0, refused: 0 }
  /** What nodes are told of the engine. */
  readonly weights: NodeWeights
  /** Nodes that wait for something to do. */
  readonly waiting: WaitingClaims
  readonly #parts: NodeJobsParts
  readonly #clock: Clock
  readonly #newId: IdMaker
  readonly #runs = new Map<Id, NodeRun>()
  readonly #files = new Map<Id, Promise<TaskFiles>>()
  /** Runs that were stopped here: their jobs are given back. */
  readonly #stopped = new Set<Id>()
  readonly #turns = new KeyedTurns<Id>()
  /** Rollouts that could not be ingested to their end, as far as this process knows. */
  readonly #partial = new Set<Id>()
  /** When a session was heard of last. */
  readonly #beatAt = new Map<Id, number>()
  /** A session is not passed over while something of it is ingested. */
  readonly #ofSession = new KeyedTurns<Id>()
  readonly #sweeping: NodeJS.Timeout
  #sweptAt: number

  constructor(parts: NodeJobsParts) {
    this.#parts = parts
    this.leaseMs = parts.leaseMs
    this.#clock = parts.clock ?? systemClock
    this.#newId = parts.newId ?? newId
    this.waiting = new WaitingClaims(this.#clock)
    const { queue } = parts.store
    this.weights = new NodeWeights({
      queue,
      clock: this.#clock,
      passOver: (session) => this.#leave(session),
      ...(parts.onAnswered === undefined ? {} : { onAnswered: parts.onAnswered }),
    })
    this.#sweptAt = this.#clock.now()
    this.#sweeping = setInterval(() => void this.#sweep(), this.sweepMs).unref()
  }

  /** How often sessions over time are looked for. */
  get sweepMs(): number {
    return Math.max(100, Math.round(this.leaseMs / 4))
  }

  close(): void {
    clearInterval(this.#sweeping)
    this.weights.close()
    this.waiting.close()
  }

  /** A run's jobs may be claimed from now on. */
  add(run: NodeRun): void {
    this.#stopped.delete(run.runId)
    this.#runs.set(run.runId, run)
    this.waiting.ring()
  }

  /** No more jobs of a run are given out. `stopped`: nodes stop those they have and give them back. */
  remove(runId: Id, stopped: boolean): void {
    this.#runs.delete(runId)
    this.#files.delete(runId)
    if (stopped) this.#stopped.add(runId)
  }

  /** A token's own session. Throws `NODE_SESSION_GONE` for one that nobody began, `NODE_NOT_YOURS` for one of another token. */
  async sessionOf(token: string, id: Id, needs: 'up' | null = null): Promise<NodeSessionView> {
    const session = await this.#parts.store.queue.session(id)
    if (session === null) throw gone(id)
    if (session.name.split(nameSeparator)[0] !== token || !session.name.includes(nameSeparator)) {
      throw new PaddockError('NODE_NOT_YOURS', `the node session ${id} is not one of the token ${token}`)
    }
    if (needs !== null && session.state !== needs) throw gone(id)
    return session
  }

  /** A claim of a run: no hand-in goes on meanwhile, and those that wait wait for it, because a place is empty until it is answered. */
  claiming<T>(runId: Id, work: () => Promise<T>): Promise<T> {
    return this.#turns.take(runId, work, { ahead: true })
  }

  /**
   * Jobs that were just claimed: what an earlier attempt of theirs had begun to hand in and never finished ends as `infra`, since from
   * now on it is refused.
   */
  async overtake(leases: readonly Lease[]): Promise<readonly Lease[]> {
    const { catalogue, recorder } = this.#parts.store
    for (const lease of leases) {
      const attempt = attemptOf(lease)
      if (lease.groupId === null || attempt === 0) continue
      const { slot } = lease.payload as { readonly slot: number } // Written by the groups of a run.
      for (const rollout of await catalogue.rollouts({ groupId: lease.groupId, slots: [slot] })) {
        // One that is whole and unverified is taken up.
        if (rollout.end !== null || isUnverified(rollout) || rollout.attempt >= attempt) continue
        const events = await recorder.events({ rolloutId: rollout.id })
        if (!this.#partial.delete(rollout.id) && !events.some(({ kind }) => kind === 'handed_in')) continue
        await catalogue.endRollout(rollout.id, this.#clock.now(), 'infra', 'its node never finished handing it in')
      }
    }
    return leases
  }

  /** Begins a session of a token's node. */
  async open(token: string, node: { readonly name: string; readonly labels: readonly string[] }): Promise<Id> {
    const id = this.#newId()
    const name = `${token}${nameSeparator}${node.name}`
    await this.#parts.store.queue.join({ id, name, labels: node.labels }, this.leaseMs)
    return id
  }

  /** Ends a session in order: what it still holds goes back and burns no attempt. */
  async end(token: string, session: Id): Promise<void> {
    await this.sessionOf(token, session)
    await this.#leave(session)
    this.weights.left(session)
  }

  async drain(token: string, session: Id): Promise<void> {
    await this.sessionOf(token, session)
    await this.#parts.store.queue.drain(session)
  }

  /** Keeps a session. `alive: false`: it is over, and the node joins with a new one. */
  async beat(
    token: string,
    session: Id,
    held: readonly Pick<LeaseKey, 'jobId' | 'token'>[],
  ): Promise<{ readonly alive: boolean; readonly stop: readonly StopJob[] }> {
    await this.sessionOf(token, session)
    const { queue } = this.#parts.store
    const { alive, cancel } = await queue.beat(session, this.leaseMs)
    if (alive) this.#beatAt.set(session, this.#clock.monotonic())
    else this.#beatAt.delete(session)
    const jobs = new Map((await queue.jobs({ ids: held.map(({ jobId }) => jobId) })).map((job) => [job.id, job]))
    const cancelled = new Set(cancel)
    const stop = held.flatMap((one): readonly StopJob[] => {
      const job = jobs.get(one.jobId)
      if (job === undefined || job.token !== one.token || job.session !== session) {
        return [{ jobId: one.jobId, why: 'lost' }]
      }
      if (job.runId !== null && this.#stopped.has(job.runId)) return [{ jobId: one.jobId, why: 'over' }]
      return cancelled.has(one.jobId) || job.cancelAsked ? [{ jobId: one.jobId, why: 'cancelled' }] : []
    })
    return { alive, stop }
  }

  /**
   * Hears what a node has done of what it was told of the engine, and tells what holds once that is something else, or `waitMs` is over.
   * `also`: earlier sessions of the same process, and of earlier ones that are dead.
   */
  async weightsFor(
    token: string,
    session: Id,
    asked: {
      readonly also: readonly Id[]
      readonly said: NodeSaid
      readonly waitMs: number
      readonly signal: AbortSignal
    },
  ): Promise<ToldWeights> {
    await this.sessionOf(token, session)
    const others = await Promise.all(asked.also.map((id) => this.#parts.store.queue.session(id)))
    const own = others.flatMap((one) => (one?.name.split(nameSeparator)[0] === token ? [one.id] : []))
    this.weights.hear([session, ...own], asked.said)
    return this.weights.next(asked.said.mark, asked.waitMs, asked.signal)
  }

  /**
   * Jobs of the runs at work, in the order in which these began; none for a node that has not done yet what it was told of the engine
   * (`mark`). Where there are none it waits for the first. Throws `NODE_SESSION_GONE`.
   */
  async claim(
    token: string,
    session: Id,
    { mark, isWhole = true, waitMs = 0, signal = new AbortController().signal, ...asked }: NodeClaim,
  ): Promise<readonly NodeJob[]> {
    const { labels } = await this.sessionOf(token, session, 'up')
    const kind = JSON.stringify([mark, isWhole, labels.toSorted(), asked.without.toSorted()])
    const askedAt = this.#clock.monotonic()
    const attempt = async (): Promise<readonly NodeJob[] | null | 'away'> => {
      // One that is frozen or cut off would hold what it is given until its lease is over.
      const heardAt = Math.max(askedAt, this.#beatAt.get(session) ?? 0)
      if (this.#clock.monotonic() - heardAt > this.leaseMs / 3) return 'away'
      if (!isWhole || !this.weights.isCurrent(mark)) return null
      const { found, someHere } = await this.#claim(session, asked)
      if (this.weights.isCurrent(mark)) return found.length === 0 && someHere ? 'away' : found
      // It was not among those that were waited for.
      for (const { lease } of found) await this.#parts.store.queue.giveBack(lease, 'drain')
      if (found.length > 0) this.waiting.ring()
      return null
    }
    return this.waiting.claim({ kind, limit: asked.limit, waitMs, signal, attempt })
  }

  async #claim(
    session: Id,
    { without, ...request }: ClaimRequest & { readonly without: readonly Id[] },
  ): Promise<{ readonly found: readonly NodeJob[]; readonly someHere: boolean }> {
    const found: NodeJob[] = []
    let someHere = false
    for (const run of this.#runs.values()) {
      if (found.length >= request.limit) break
      if (without.includes(run.runId)) continue
      const order = await run.order()
      const left = { ...request, limit: request.limit - found.length }
      const claimed = await this.claiming(run.runId, () => run.claim(session, left))
      found.push(...claimed.jobs.map((job) => ({ ...job, order })))
      someHere ||= claimed.someHere
    }
    return { found, someHere }
  }

  /** The list of files of a run at work. Throws `NOT_FOUND`. */
  async files(token: string, session: Id, runId: Id): Promise<TaskFiles> {
    await this.sessionOf(token, session)
    const run = this.#at(runId)
    const known = this.#files.get(runId)
    if (known !== undefined) return known
    const listed = listTaskFiles(run.tasks)
    this.#files.set(runId, listed)
    listed.catch(() => this.#files.delete(runId))
    return listed
  }

  /** Path of one file of them. Throws `NOT_FOUND`. */
  async file(
    token: string,
    session: Id,
    { runId, digest }: { readonly runId: Id; readonly digest: string },
  ): Promise<string> {
    const list = await this.files(token, session, runId)
    return taskFileAt(this.#at(runId).tasks, list, digest)
  }

  /** The record of a rollout that a job goes on from. Throws `NOT_FOUND` for any other, and for whoever does not hold the job. */
  async parent(token: string, lease: LeaseKey, rolloutId: Id): Promise<PackedRollout> {
    await this.sessionOf(token, lease.session)
    const { store } = this.#parts
    const [job] = await store.queue.jobs({ ids: [lease.jobId] })
    const isHeld = job?.state === 'leased' && job.token === lease.token && job.session === lease.session
    const run = job?.runId == null ? undefined : this.#runs.get(job.runId)
    const parents = isHeld && job.groupId !== null ? await run?.parents(job.groupId) : undefined
    if (parents?.includes(rolloutId) === true) return packRollout(store, rolloutId)
    throw new PaddockError(
      'NOT_FOUND',
      `the session ${lease.session} does not hold a job ${lease.jobId} that goes on from rollout ${rolloutId}`,
    )
  }

  /**
   * Takes a finished rollout in. The same again changes nothing and is answered the same. Refused where the job is somebody else's by
   * now; a session over time is no reason. Throws `HANDIN_*`, `STORE_CONFLICT`.
   */
  async handIn(token: string, lease: LeaseKey, { bytes, digest, fault }: HandedRollout): Promise<HandInResult> {
    const { name } = await this.sessionOf(token, lease.session)
    const { store } = this.#parts
    const [known] = await store.queue.jobs({ ids: [lease.jobId] })
    if (known?.runId == null) return this.#counted({ accepted: false, why: 'unknown_job', rolloutId: null })
    const { runId, groupId, payload } = known
    const { slot } = payload as { readonly slot: number } // Written by the groups of a run.
    const run = this.#runs.get(runId)
    let next: 'done' | 'again' = 'done'
    const inTurn = <T>(work: () => Promise<T>) =>
      this.#turns.take(runId, () => this.#ofSession.take(lease.session, work))
    const result = await inTurn(async (): Promise<HandInResult> => {
      const [now] = await store.queue.jobs({ ids: [lease.jobId] })
      // Whose job is another's by now, or was handed in: the queue knows what it was handed in with.
      if (now?.token !== lease.token || now.session !== lease.session || now.state === 'done') {
        return { ...(await store.queue.handIn(lease, { digest, made: null, next })), rolloutId: null }
      }
      let begun: Id | null = null
      const taken = await takeInRollout(
        store,
        { bytes, digest, by: nodeNameOf(name) },
        {
          clock: this.#clock,
          newId: this.#newId,
          accepts: (rollout) => {
            const same = rollout.runId === runId && rollout.groupId === groupId && rollout.slot === slot
            if (same && rollout.attempt === attemptOf(lease)) {
              begun = rollout.id
              return
            }
            throw new PaddockError(
              'NODE_NOT_YOURS',
              `the rollout ${rollout.id} is not what job ${lease.jobId} asks for`,
            )
          },
        },
      ).catch((error: unknown) => {
        if (begun !== null) this.#partial.add(begun)
        throw error
      })
      const { rolloutId } = taken
      this.#partial.delete(rolloutId)
      const rollout = await store.catalogue.rollout(rolloutId)
      next = run?.next(lease.jobId, rollout, fault) ?? (rollout.end === 'infra' ? 'again' : 'done')
      // The job is there until it has its verdict; whoever claims it finds it done.
      if (isUnverified(rollout)) next = 'again'
      return { ...(await store.queue.handIn(lease, { digest, made: null, next })), rolloutId }
    })
    if (result.accepted && result.state === 'ready') this.waiting.ring()
    if (result.accepted && !result.repeated && result.rolloutId !== null) await run?.ended(result.rolloutId, next)
    return this.#counted(result)
  }

  /** Gives a job back undone. False where it is somebody else's. */
  async giveBack(
    token: string,
    lease: LeaseKey,
    { why, reason }: { readonly why: 'drain' | 'failure'; readonly reason: string | null },
  ): Promise<boolean> {
    const { name } = await this.sessionOf(token, lease.session)
    const { queue } = this.#parts.store
    const [job] = await queue.jobs({ ids: [lease.jobId] })
    const given = await queue.giveBack(lease, why)
    const run = job?.runId == null ? undefined : this.#runs.get(job.runId)
    if (given && reason !== null && job?.runId === null) this.#parts.onGivenBack?.(nodeNameOf(name), reason)
    if (given && reason !== null) run?.note(`node ${nodeNameOf(name)} gave a job back: ${reason}`)
    if (given) this.waiting.ring()
    return given
  }

  async #leave(session: Id): Promise<void> {
    await this.#ofSession.take(session, () => this.#parts.store.queue.leave(session))
    this.#beatAt.delete(session)
    this.waiting.ring()
  }

  #counted(result: HandInResult): HandInResult {
    this.handIns[result.accepted ? (result.repeated ? 'repeated' : 'accepted') : 'refused'] += 1
    return result
  }

  #at(runId: Id): NodeRun {
    const run = this.#runs.get(runId)
    if (run === undefined) throw new PaddockError('NOT_FOUND', `no run ${runId} is at work here`)
    return run
  }

  /** A process that was frozen itself lets everybody beat before it looks who did not. */
  async #sweep(): Promise<void> {
    const now = this.#clock.now()
    const since = now - this.#sweptAt
    this.#sweptAt = now
    if (since > 2 * this.sweepMs) return
    try {
      const { ready } = await this.#parts.store.queue.sweep()
      if (ready > 0) this.waiting.ring()
    } catch (error) {
      this.#parts.onFailure(error)
    }
  }
}

function gone(session: Id): PaddockError {
  return new PaddockError('NODE_SESSION_GONE', `The node session ${session} takes no jobs: it is over or unknown`)
}

/** Each claim of a job is an attempt of its own, so that a node which claims it once more has none of that number. */
export function attemptOf({ token }: Pick<LeaseKey, 'token'>): number {
  return token - 1
}
