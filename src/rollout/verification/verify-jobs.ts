import { relative } from 'node:path'
import {
  type Digest,
  generatedPlace,
  type Id,
  type IdMaker,
  isPaddockError,
  newId,
  PaddockError,
  sha256,
} from '../../core/index.ts'
import type { Environment } from '../../envs/index.ts'
import type { Blobs, ClaimRequest, HandInAnswer, Lease, LeaseKey, Queue } from '../../trajectory/index.ts'
import { JobRunner } from '../group/job-runner.ts'
import { listTaskFiles, type TaskFiles, taskFileAt } from '../nodes/task-files.ts'
import type { NodeVerification, Verified, VerifyOrder } from './contract.ts'
import { isFault, mostVerifyTries } from './item.ts'

/** A verification that somebody waits for. */
export interface AskedVerification {
  readonly order: VerifyOrder
  /** What verifies it here. */
  readonly environment: Environment
  /** What the names of its work stand for. */
  readonly blobs: Pick<Blobs, 'get'>
  /** The folder or file of tasks that a node needs; `task.source` is there or below it. */
  readonly root: string
}

export interface VerifyJobsParts {
  readonly store: { readonly queue: Queue }
  /** Verifies here. Throws the signal's reason alone. Null: all is left to nodes. */
  readonly here: ((asked: AskedVerification, signal: AbortSignal) => Promise<Verified>) | null
  /** Here, at once. */
  readonly places: number
  readonly onFailure: (error: unknown) => void
  /** There is something to claim. */
  readonly onReady?: () => void
  readonly newId?: IdMaker
}

interface Waiting extends AskedVerification {
  readonly topic: string
  readonly came: PromiseWithResolvers<Verified>
  /** Those that a fault of ours ended. */
  faults: number
}

/** What verifications need of the room of whoever claims. */
const room = 'verify'
/** Another read of the same files is not made within this time. */
const filesMs = 60_000
const mostLists = 256

/**
 * Verifications as jobs: whoever has room for one claims it, here or on a node, and hands its outcome in once. Who asks waits here, and so
 * does what is verified: with this process both end, and jobs of an earlier one are nobody's. A fault of ours is tried again.
 */
export class VerifyJobs {
  readonly #parts: VerifyJobsParts
  readonly #newId: IdMaker
  /** Topics are of this process, so that no job of an earlier one, or of another on the same catalogue, is claimed. */
  readonly #epoch: Id
  readonly #stop = new AbortController()
  readonly #waiting = new Map<Id, Waiting>()
  /** Outcomes here, until they are handed in. */
  readonly #made = new Map<Id, Verified>()
  readonly #lists = new Map<string, { readonly at: number; readonly files: Promise<TaskFiles> }>()
  #runner: { readonly jobs: JobRunner; readonly ended: Promise<void> } | null = null

  constructor(parts: VerifyJobsParts) {
    this.#parts = parts
    this.#newId = parts.newId ?? newId
    this.#epoch = this.#newId()
  }

  /** Resolves with what it came to. What failed for good is `infra_error`. Throws the signal's reason, `OWNER_STOPPING`, `STORE_*`. */
  async verify(asked: AskedVerification, signal: AbortSignal): Promise<Verified> {
    const { queue } = this.#parts.store
    const over = AbortSignal.any([signal, this.#stop.signal])
    over.throwIfAborted()
    const id = this.#newId()
    const { name } = asked.order.environment
    const topic = `verify/${this.#epoch}/${name}`
    const waiting: Waiting = { ...asked, topic, came: Promise.withResolvers(), faults: 0 }
    const onAbort = (): void => waiting.came.reject(over.reason)
    over.addEventListener('abort', onAbort, { once: true })
    this.#waiting.set(id, waiting)
    try {
      const { digest } = asked.order.task
      await queue.enqueue(topic, [{ id, payload: { task: digest }, needs: { capacity: { [room]: 1 } } }])
      this.#wake()
      return await waiting.came.promise
    } catch (error) {
      // Nobody waits for it any more.
      await queue.cancel({ ids: [id] })
      this.#runner?.jobs.stop([id], error)
      throw error
    } finally {
      over.removeEventListener('abort', onAbort)
      this.#waiting.delete(id)
      this.#made.delete(id)
    }
  }

  /** Verifications for a node. `without`: environments that it cannot verify. Throws `NODE_SESSION_GONE`. */
  async claim(
    session: Id,
    { without, ...asked }: Omit<ClaimRequest, 'capacity'> & { readonly without: readonly string[] },
  ): Promise<readonly NodeVerification[]> {
    const not = (one: Waiting): boolean => without.includes(one.order.environment.name)
    const found: NodeVerification[] = []
    for (const { jobId, token } of await this.#claim(session, asked, not)) {
      const waiting = this.#waiting.get(jobId)
      if (waiting === undefined) continue
      const { order, root } = waiting
      const { source } = order.task
      const at = generatedPlace(source) === null ? relative(root, source) : ''
      found.push({ lease: { jobId, session, token }, order, at, here: this.#parts.here !== null })
    }
    return found
  }

  /** The files that go with a verification. Throws `NOT_FOUND` for one that the lease does not hold. */
  async files(lease: LeaseKey): Promise<TaskFiles> {
    const { root } = await this.#held(lease)
    const known = this.#lists.get(root)
    const now = performance.now()
    if (known !== undefined && now - known.at < filesMs) return known.files
    const files = filesAt(root)
    this.#lists.delete(root)
    this.#lists.set(root, { at: now, files })
    files.catch(() => this.#lists.delete(root))
    const [oldest] = this.#lists.keys()
    if (this.#lists.size > mostLists && oldest !== undefined) this.#lists.delete(oldest)
    return files
  }

  /** Path of one of them. Throws `NOT_FOUND`. */
  async file(lease: LeaseKey, digest: string): Promise<string> {
    const files = await this.files(lease)
    return taskFileAt((await this.#held(lease)).root, files, digest)
  }

  /** Something of the work. Throws `NOT_FOUND` for what is not of it. */
  async artifact(lease: LeaseKey, digest: Digest): Promise<Uint8Array> {
    const { order, blobs } = await this.#held(lease)
    if (order.work.artifacts.some(({ sha256: name }) => name === digest)) return blobs.get(digest)
    throw new PaddockError('NOT_FOUND', `no artifact of the verification ${lease.jobId} has the digest ${digest}`)
  }

  /** What a node made of it. The same again changes nothing; refused where it is somebody else's by now. */
  async handIn(
    lease: LeaseKey,
    { digest, came }: { readonly digest: Digest; readonly came: Verified },
  ): Promise<HandInAnswer> {
    const { queue } = this.#parts.store
    const [job] = await queue.jobs({ ids: [lease.jobId] })
    if (job?.topic.startsWith('verify/') !== true) return { accepted: false, why: 'unknown_job' }
    const answer = await queue.handIn(lease, { digest, made: null, next: this.#next(lease.jobId, came) })
    if (answer.accepted && !answer.repeated) this.#came(lease.jobId, came)
    return answer
  }

  /** Ends what is under way here. Who waits hears `OWNER_STOPPING`. */
  async close(): Promise<void> {
    this.#stop.abort(new PaddockError('OWNER_STOPPING', 'Paddock stops'))
    await this.#runner?.ended
  }

  async #claim(
    session: Id,
    request: Omit<ClaimRequest, 'capacity'>,
    not: (one: Waiting) => boolean,
  ): Promise<readonly Lease[]> {
    const found: Lease[] = []
    for (const topic of new Set([...this.#waiting.values()].flatMap((one) => (not(one) ? [] : [one.topic])))) {
      const limit = request.limit - found.length
      if (limit <= 0) break
      found.push(
        ...(await this.#parts.store.queue.claim(topic, session, { ...request, limit, capacity: { [room]: limit } })),
      )
    }
    return found
  }

  async #held({ jobId, session, token }: LeaseKey): Promise<Waiting> {
    const [job] = await this.#parts.store.queue.jobs({ ids: [jobId] })
    const waiting = this.#waiting.get(jobId)
    if (waiting !== undefined && job?.token === token && job.session === session && job.state === 'leased')
      return waiting
    throw new PaddockError('NOT_FOUND', `the session ${session} does not hold a verification ${jobId}`)
  }

  #next(jobId: Id, came: Verified): 'done' | 'again' {
    const waiting = this.#waiting.get(jobId)
    return waiting !== undefined && isFault(came) && waiting.faults + 1 < mostVerifyTries ? 'again' : 'done'
  }

  /** It was handed in. */
  #came(jobId: Id, came: Verified): void {
    const waiting = this.#waiting.get(jobId)
    if (waiting === undefined) return
    const next = this.#next(jobId, came)
    if (isFault(came)) waiting.faults += 1
    if (next === 'done') waiting.came.resolve(came)
    else this.#wake()
  }

  /** There is something to claim: for nodes, and for somebody here where anybody works here. */
  #wake(): void {
    const { here, places, store, onReady } = this.#parts
    onReady?.()
    if (here === null) return
    if (this.#runner !== null) return this.#runner.jobs.wake()
    const jobs = new JobRunner({
      queue: store.queue,
      claim: (_topic, session, request) => this.#claim(session, request, () => false),
      topic: `verify/${this.#epoch}`,
      nodeName: `verify:${this.#epoch}`,
      places,
      newId: this.#newId,
      signal: this.#stop.signal,
      work: async ({ jobId }, signal) => {
        const waiting = this.#waiting.get(jobId)
        if (waiting === undefined) return { next: 'done', digest: sha256('') }
        const came = await here(waiting, signal).catch((error: unknown) => {
          if (!signal.aborted) throw error
          return null
        })
        if (came === null) return { next: 'back' }
        this.#made.set(jobId, came)
        return { next: this.#next(jobId, came), digest: digestOf(came) }
      },
      onEnded: async ({ jobId }, answer) => {
        const came = this.#made.get(jobId)
        if (came !== undefined && answer?.accepted === true && !answer.repeated) this.#came(jobId, came)
      },
    })
    const ended = jobs
      .run(() => false)
      .catch((error: unknown) => {
        this.#runner = null
        if (isPaddockError(error) && error.code === 'STORE_CLOSED') return
        this.#parts.onFailure(error)
        for (const { came } of this.#waiting.values()) came.reject(error)
      })
    this.#runner = { jobs, ended }
  }
}

/** Names an outcome: the same again is the same hand-in. */
export function digestOf(came: Verified): Digest {
  return sha256(JSON.stringify(came))
}

/** None where they are gone: a verifier that needs them says so, as it does where they were. */
async function filesAt(root: string): Promise<TaskFiles> {
  try {
    return await listTaskFiles(root)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    return { digest: sha256(''), name: 'none', single: null, files: [] }
  }
}
