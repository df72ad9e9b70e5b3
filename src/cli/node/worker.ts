import { setTimeout } from 'node:timers/promises'
import { type Id, isPaddockError, KeyedTurns, newId, PaddockError, systemClock } from '../../core/index.ts'
import { isUnverified, type NodeJob, rolloutOfJob, type RunAtNode } from '../../rollout/index.ts'
import type { NodeEngines } from '../../server/index.ts'
import { packRollout, type Store, takeInRollout } from '../../trajectory/index.ts'
import type { Joined, NodeClient } from './client.ts'
import type { HandedJob, HeldJob, JobFiles } from './job-files.ts'
import type { NodeNews } from './news.ts'
import type { PastStores } from './past-stores.ts'
import type { NodeVerifier } from './verifier.ts'

export interface WorkerParts {
  readonly client: NodeClient
  readonly store: Pick<Store, 'catalogue' | 'recorder' | 'blobs'>
  readonly outbox: JobFiles<HeldJob>
  /** What was handed in, as long as it is kept. */
  readonly handed: JobFiles<HandedJob>
  readonly past: Pick<PastStores, 'isDue' | 'keep' | 'packed' | 'forget'>
  /** Verifications beside its rollouts. */
  readonly verifier: Pick<NodeVerifier, 'begin' | 'held' | 'stop' | 'close'>
  readonly places: number
  readonly joined: Joined
  /** Names what was told of the engine and is done. */
  readonly mark: () => string
  /** Begins a further session. */
  readonly rejoin: () => Promise<Joined>
  /** Ctrl-C: claims no more, gives back what is under way. */
  readonly signal: AbortSignal
  /** Finds and prepares a run of the coordinator. Throws what makes this node unfit for it. */
  readonly open: (order: NodeJob['order'], session: Id) => Promise<RunAtNode>
  readonly tell: (news: NodeNews) => void
}

interface AtWork {
  readonly job: NodeJob
  readonly stop: AbortController
  ended: Promise<void>
  /** Its rollout goes on. Then it is only handed in, and its place is another one's. */
  atPlace: boolean
}

/** Why a rollout was stopped whose job somebody else does. */
class NotOurs extends Error {}
/** Why one was stopped that is given back. */
class GivenBack extends Error {}

/** The coordinator keeps a claim until there is something; after an answer that came sooner nothing is asked for so long. */
const pauseMs = 500

/** A node at work: claims, does, hands in, under one session after the other. */
export class NodeWorker {
  readonly #parts: WorkerParts
  /** Of one job there may be two: one is handed in, and what it came to is tried again. */
  readonly #running = new Set<AtWork>()
  readonly #runs = new Map<Id, Promise<RunAtNode>>()
  /** Runs that this node cannot do. */
  readonly #unfit = new Set<Id>()
  /** What several jobs go on from is asked for once. */
  readonly #parents = new KeyedTurns<Id>()
  #session: Id
  /** Sessions of an earlier process whose jobs are not taken up yet: it is dead, so nothing of them is sampled any more. */
  #earlier: readonly Id[] = []
  readonly #engines: NodeEngines | null
  #leaseMs: number
  #enginesChanged = false
  /** How often the coordinator's catalogue had lost something, as it says, and when all was handed in that it may lack. */
  #rewound: number
  #whole: number
  #beating: Promise<void> | null = null
  #failure: { readonly error: unknown } | null = null
  /** What is claimed until there is an answer: a claim that was let go may have been answered, and the same again gives the same. */
  #claiming: { readonly requestId: Id; readonly without: readonly Id[] } | null = null
  /** The claim that waits for an answer; aborted: what it says is out of date. */
  #asked = new AbortController()
  #freed: () => void = () => undefined

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.#session = parts.joined.session
    this.#leaseMs = parts.joined.leaseMs
    this.#engines = parts.joined.engines
    this.#rewound = parts.joined.rewound
    this.#whole = -1
  }

  /** The session that claims, and others of this node whose work would still be taken. */
  get sessions(): { readonly now: Id; readonly also: readonly Id[] } {
    const also = new Set([...this.#earlier, ...[...this.#running].map(({ job }) => job.lease.session)])
    also.delete(this.#session)
    return { now: this.#session, also: [...also] }
  }

  /**
   * Works until the signal aborts, the coordinator has another engine, or the store is to be set aside. Resolves when nothing is under way.
   * Throws `STORE_*`, `CONTROL_TOKEN`.
   */
  async run(): Promise<'stopped' | 'engines' | 'store'> {
    const { signal, client, verifier } = this.#parts
    const beating = setInterval(() => void this.#beat(), Math.max(50, Math.round(this.#leaseMs / 6)))
    const onAbort = () => {
      this.#stopAll(new GivenBack('the node stops'))
      this.look()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    verifier.begin(() => this.#session)
    try {
      while (!signal.aborted && !this.#leaves && this.#failure === null) await this.#round()
      if (!signal.aborted) await client.drain(this.#session).catch(() => undefined)
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (signal.aborted) onAbort()
      await Promise.all([verifier.close(), ...[...this.#running].map(({ ended }) => ended)])
      clearInterval(beating)
      await Promise.all([...this.#runs.keys()].map((runId) => this.#close(runId)))
    }
    if (this.#failure !== null) throw this.#failure.error
    await client.end(this.#session).catch(() => undefined)
    if (signal.aborted) return 'stopped'
    return this.#enginesChanged ? 'engines' : 'store'
  }

  get #leaves(): boolean {
    return this.#enginesChanged || this.#parts.past.isDue
  }

  /** What it asks for is another by now: the claim that waits is let go, and the next one says so. */
  look(): void {
    this.#asked.abort()
    this.#freed()
  }

  /** What is handed in holds no place; there is a bound on it all the same. */
  get #free(): number {
    const { places } = this.#parts
    const all = [...this.#running]
    return Math.min(places - all.filter(({ atPlace }) => atPlace).length, 2 * places - all.length)
  }

  /** Claims what there is room for. */
  async #round(): Promise<void> {
    while (this.#whole !== this.#rewound && !this.#parts.signal.aborted) await this.#handInAgain()
    if (this.#free <= 0) return new Promise((resolve) => (this.#freed = resolve))
    const at = performance.now()
    const { signal } = (this.#asked = new AbortController())
    const jobs = await this.#claim(this.#free, signal)
    for (const job of jobs) {
      // It was found unfit for the run while it waited.
      if (this.#unfit.has(job.order.run.id))
        await this.#giveBack(job, 'drain', null).catch((error) => this.#fail(error))
      else this.#start(job)
    }
    if (jobs.length > 0 || signal.aborted) return
    const idle = [...this.#runs.keys()].filter(
      (runId) => ![...this.#running].some(({ job }) => job.order.run.id === runId),
    )
    await Promise.all(idle.map((runId) => this.#close(runId)))
    if (performance.now() - at < pauseMs) await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined)
  }

  async #claim(limit: number, until: AbortSignal): Promise<readonly NodeJob[]> {
    const { client, signal } = this.#parts
    this.#claiming ??= { requestId: newId(), without: [...this.#unfit].slice(-1000) }
    const asked = {
      ...this.#claiming,
      limit: Math.min(limit, 64),
      capacity: { places: limit },
      mark: this.#parts.mark(),
      rewound: this.#whole,
    }
    try {
      const jobs = await client.claim(this.#session, asked, { signal: AbortSignal.any([signal, until]) })
      this.#claiming = null
      return jobs
    } catch (error) {
      if (signal.aborted || until.aborted) return []
      if (isGone(error)) {
        await this.#rejoin()
        return []
      }
      this.#fail(error)
      return []
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.look()
  }

  async #rejoin(): Promise<void> {
    const { session, engines, leaseMs, rewound } = await this.#parts.rejoin()
    this.#session = session
    this.#claiming = null
    this.#leaseMs = leaseMs
    this.#rewound = rewound
    this.look()
    this.#met(engines)
    this.#parts.tell({ type: 'session', session, detail: 'the earlier session was over' })
  }

  #met(engines: NodeEngines | null): void {
    if (engines === null || JSON.stringify(engines) === JSON.stringify(this.#engines)) return
    this.#enginesChanged = true
    this.look()
  }

  #start(job: NodeJob): void {
    const stop = new AbortController()
    if (this.#parts.signal.aborted) stop.abort(new GivenBack('the node stops'))
    const one: AtWork = { job, stop, atPlace: true, ended: Promise.resolve() }
    const leave = (): void => {
      one.atPlace = false
      this.#freed()
    }
    this.#running.add(one)
    one.ended = this.#work(job, stop.signal, leave)
      .catch((error: unknown) => {
        // Without an answer of the coordinator the job stays in the outbox, for the next start.
        if (!this.#parts.signal.aborted) this.#fail(error)
      })
      .finally(() => {
        this.#running.delete(one)
        this.#freed()
      })
  }

  /** `leave`: its place is free. */
  async #work(job: NodeJob, signal: AbortSignal, leave: () => void): Promise<void> {
    const { outbox, open, tell } = this.#parts
    const runId = job.order.run.id
    await outbox.put(job)
    tell({
      type: 'claimed',
      job: job.lease.jobId,
      run: runId,
      detail: `slot ${job.slot}, attempt ${job.attempt}`,
    })
    let run: RunAtNode | null = null
    try {
      const opened = this.#runs.get(runId) ?? open(job.order, job.lease.session)
      this.#runs.set(runId, opened)
      run = await opened
      signal.throwIfAborted()
      for (const parent of job.parents) await this.#keepParent(job, parent)
      signal.throwIfAborted()
    } catch (error) {
      if (!signal.aborted) {
        if (run === null) this.#runs.delete(runId)
        // Only the session is over: the run is done under the next one.
        if (!isGone(error)) this.#unfit.add(runId)
      }
      return this.#giveBack(job, signal.aborted ? 'drain' : 'failure', signal.aborted ? null : lineOf(error))
    }
    // A rewound catalogue gives a number of an attempt again: the next claim has another.
    if ((await rolloutOfJob(this.#parts.store.catalogue, job)) !== null) {
      return this.#giveBack(job, 'drain', `attempt ${job.attempt} of it ran here before`)
    }
    const { rolloutId, fault } = await run.work(job, signal)
    leave()
    if (signal.reason instanceof NotOurs) {
      await outbox.remove(job)
      return
    }
    const rollout = await this.#parts.store.catalogue.rollout(rolloutId)
    if (
      (rollout.end === null && !isUnverified(rollout)) ||
      (rollout.end === 'cancelled' && signal.reason instanceof GivenBack)
    ) {
      return this.#giveBack(job, 'drain', null)
    }
    await this.handIn(job, rolloutId, fault)
  }

  /** The record of a rollout that a job goes on from is in this store: it ran here, was asked for before, or is now. */
  #keepParent({ lease }: NodeJob, rolloutId: Id): Promise<void> {
    const { client, store } = this.#parts
    return this.#parents.take(rolloutId, async () => {
      const [known] = await store.catalogue.rollouts({ ids: [rolloutId] })
      if (known !== undefined && known.end !== null) return
      await takeInRollout(store, { ...(await client.parent(lease, rolloutId)), by: 'coordinator' })
    })
  }

  /** Hands a rollout of this store in, until there is an answer. A job that is ours is given back where it is refused. */
  async handIn(job: HeldJob & Partial<Pick<NodeJob, 'order'>>, rolloutId: Id, fault: string | null): Promise<void> {
    const { client, outbox, past, store, tell } = this.#parts
    const { jobId } = job.lease
    const rewound = this.#rewound
    const packed = await packRollout(store, rolloutId)
    try {
      const { repeated, state } = await client.handIn(job.lease, { ...packed, fault })
      tell({
        type: 'handed_in',
        job: jobId,
        run: null,
        detail: `rollout ${rolloutId}, ${repeated ? 'repeated, ' : ''}job ${state}`,
      })
      const { lease, group, slot, attempt } = job
      const kept = { lease, group, slot, attempt, rolloutId, fault, at: systemClock.now(), rewound }
      await past.keep(kept, packed.bytes)
    } catch (error) {
      if (!isPaddockError(error) || !refusals.has(error.code)) throw error
      tell({ type: 'refused', job: jobId, run: null, detail: error.line() })
      // Another attempt of it would be refused likewise: it is left to others, before it is there to be claimed.
      const runId = job.order?.run.id
      if (runId !== undefined) this.#unfit.add(runId)
      // Without this a session that lives would hold the job for ever.
      const isOurs = await client.giveBack(job.lease, 'failure', error.line()).catch((cause: unknown) => {
        if (isPaddockError(cause) && refusals.has(cause.code)) return false
        throw cause
      })
      if (runId !== undefined && !isOurs) this.#unfit.delete(runId)
    }
    await outbox.remove(job)
  }

  /** Gives a job back, or finds that it is another node's by now. */
  async #giveBack(job: HeldJob, why: 'drain' | 'failure', reason: string | null): Promise<void> {
    const { client, outbox, tell } = this.#parts
    const given = await client.giveBack(job.lease, why, reason).catch((error: unknown) => {
      if (isGone(error)) return false
      throw error
    })
    tell({
      type: 'given_back',
      job: job.lease.jobId,
      run: null,
      detail: given ? (reason ?? 'undone') : 'it was not ours any more',
    })
    await outbox.remove(job)
  }

  /** What an earlier process of this node had: what ended is handed in, the rest given back. Its sessions are over. */
  async takeUp(): Promise<void> {
    const { outbox, store, client } = this.#parts
    const held = await outbox.all()
    this.#earlier = [...new Set(held.map(({ lease }) => lease.session))]
    for (const job of held) {
      const rollout = await rolloutOfJob(store.catalogue, job)
      const isOver = rollout !== null && (rollout.end !== null || isUnverified(rollout))
      if (!isOver || rollout.end === 'infra' || rollout.end === 'cancelled') {
        await this.#giveBack(job, 'drain', null)
      } else await this.handIn(job, rollout.id, null)
    }
    for (const session of this.#earlier) await client.end(session).catch(() => undefined)
    this.#earlier = []
  }

  /** What the coordinator may have lost of what it took is handed in again, before anything is claimed. */
  async #handInAgain(): Promise<void> {
    const { client, handed, past, tell, signal } = this.#parts
    const rewound = this.#rewound
    for (const job of await handed.all()) {
      if (signal.aborted) return
      if (job.rewound === rewound) continue
      const { jobId } = job.lease
      try {
        const { repeated, state } = await client.handIn(job.lease, {
          ...(await past.packed(job)),
          fault: job.fault,
        })
        const how = repeated ? 'it is there' : 'it was lost'
        tell({
          type: 'handed_in',
          job: jobId,
          run: null,
          detail: `rollout ${job.rolloutId} again: ${how}, job ${state}`,
        })
        await handed.put({ ...job, rewound })
      } catch (error) {
        if (!isPaddockError(error) || !refusals.has(error.code)) throw error
        tell({ type: 'refused', job: jobId, run: null, detail: error.line() })
        await past.forget(job)
      }
    }
    this.#whole = rewound
  }

  /** One at a time: a coordinator that is away is asked until it answers. */
  #beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => (this.#beating = null))
    return this.#beating
  }

  async #beatOnce(): Promise<void> {
    const { client, signal, verifier } = this.#parts
    const { now, also } = this.sessions
    for (const session of [now, ...also]) {
      // What is only handed in is stopped by nobody.
      const rollouts = [...this.#running].flatMap(({ job, atPlace }) => (atPlace ? [job.lease] : []))
      const held = [...rollouts.filter((lease) => lease.session === session), ...verifier.held(session)]
      try {
        const { alive, stop, engines, rewound } = await client.beat(session, held)
        if (rewound !== this.#rewound) this.look()
        this.#rewound = rewound
        this.#met(engines)
        for (const { job_id: jobId, why } of stop) this.#stop(jobId, why)
        if (!alive && session === this.#session && !signal.aborted) await this.#rejoin()
      } catch (error) {
        if (signal.aborted) return
        if (!isGone(error)) {
          this.#fail(error)
          continue
        }
        // Its catalogue lost the session: what the jobs of it come to would be refused.
        for (const { jobId } of held) this.#stop(jobId, 'lost')
        if (session === this.#session) await this.#rejoin().catch((cause: unknown) => this.#fail(cause))
      }
    }
  }

  #stop(jobId: Id, why: 'cancelled' | 'lost' | 'over'): void {
    this.#parts.verifier.stop(jobId)
    const one = [...this.#running].find(({ job, atPlace }) => atPlace && job.lease.jobId === jobId)
    if (one === undefined || one.stop.signal.aborted) return
    if (why === 'lost')
      this.#parts.tell({ type: 'lost', job: jobId, run: one.job.order.run.id, detail: 'another node has it' })
    const reason = {
      cancelled: new Error('its job was cancelled'),
      lost: new NotOurs('another node has its job'),
      over: new GivenBack('its run stopped'),
    }
    one.stop.abort(reason[why])
  }

  #stopAll(reason: Error): void {
    for (const { stop } of this.#running) stop.abort(reason)
  }

  async #close(runId: Id): Promise<void> {
    const opened = this.#runs.get(runId)
    this.#runs.delete(runId)
    const run = await opened?.catch(() => null)
    await run?.[Symbol.asyncDispose]()
  }
}

/** Answers after which a rollout is not handed in again. */
const refusals: ReadonlySet<string> = new Set([
  'HANDIN_REFUSED',
  'HANDIN_OTHER',
  'HANDIN_DAMAGED',
  'NODE_NOT_YOURS',
  'NODE_SESSION_GONE',
  'STORE_CONFLICT',
  'BODY_TOO_LARGE',
])

function isGone(error: unknown): boolean {
  return isPaddockError(error) && error.code === 'NODE_SESSION_GONE'
}

function lineOf(error: unknown): string {
  if (isPaddockError(error)) return error.line()
  return new PaddockError('INTERNAL', error instanceof Error ? error.message : String(error)).line()
}
