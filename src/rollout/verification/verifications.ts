import { setTimeout } from 'node:timers/promises'
import {
  type Clock,
  type Digest,
  type Id,
  isPaddockError,
  KeyedTurns,
  PaddockError,
  sha256,
  systemClock,
  type Task,
} from '../../core/index.ts'
import { type ArtifactItem, broughtItems, type Environment, packArtifact } from '../../envs/index.ts'
import { evidenceLimit, type VerdictDraft } from '../../reward/index.ts'
import type { Blobs, Store, VerificationRecord } from '../../trajectory/index.ts'
import { runBudgets, stageMs } from '../budgets.ts'
import type { StageBudgets } from '../contract.ts'
import { Gate } from '../gate.ts'
import { faultLine } from '../judge-end.ts'
import type { OwnRuns } from '../trainer/own-runs.ts'
import { type TrainerRun, trainerRunOf } from '../trainer/run-config.ts'
import { boxMarginMs } from '../verify.ts'
import type { VerifyOrder } from './contract.ts'
import { isFault } from './item.ts'
import type { VerifyJobs } from './verify-jobs.ts'

/** Work that was done elsewhere, and of whom. */
export interface AskedWork {
  /** The caller's own: the same key is the same verification. */
  readonly key: string
  /** Name of the token under which it is asked. */
  readonly token: string
  /** By digest; with a run whose tasks Paddock reads, by name too. As it was said it is a part of what the key stands for. */
  readonly task: string
  readonly runId: Id | null
  /** A tar, perhaps with gzip, of files as they are named in a box. */
  readonly archive: Uint8Array | null
  readonly answer: string | null
}

/** How a verification stands. */
export type Verification =
  | { readonly state: 'pending'; readonly key: string }
  | { readonly state: 'done'; readonly record: VerificationRecord }

export interface VerificationsParts {
  readonly store: {
    readonly catalogue: Pick<Store['catalogue'], 'task' | 'putTask' | 'run' | 'verification' | 'putVerification'>
  }
  readonly own: Pick<OwnRuns, 'task'>
  /** Throws for a name that neither the run nor the configuration knows. */
  environment(name: string, run: TrainerRun['own']): Promise<Environment>
  /** Verifies, here or on a node. */
  readonly jobs: Pick<VerifyJobs, 'verify'>
  /** `verifyMs`, where the configuration has one. */
  readonly budgets?: Partial<StageBudgets>
  /** A verification came to nothing. */
  onFailure(key: string, error: PaddockError): void
  readonly clock?: Clock
}

/** That may be under way or wait, and what their files may be together. */
const mostWaiting = 256
const mostHeldBytes = 512 << 20
/** Archives that are read at once, each in memory. */
const mostReading = 4
/** What came to nothing is told to whoever looks, so many of them. */
const mostFailures = 1000

interface Found {
  readonly task: Task
  readonly environment: Environment
  readonly work: VerifyOrder['work']
  /** What its names stand for. */
  readonly blobs: Pick<Blobs, 'get'>
  readonly sizeBytes: number
}

interface Job {
  readonly asked: Digest
  readonly ended: Promise<VerificationRecord>
}

/**
 * Verifies work that was done elsewhere, in verifier boxes of this machine or of a node: so much waiting, and the rest
 * refused. A verdict is stored under the caller's key before anybody hears of it; what is lost with this process was never
 * answered and is asked for again. A fault of ours gives no verdict and frees the key.
 */
export class Verifications {
  readonly #parts: VerificationsParts
  readonly #clock: Clock
  readonly #reading = new Gate(mostReading)
  readonly #stop = new AbortController()
  readonly #turns = new KeyedTurns<string>()
  readonly #jobs = new Map<string, Job>()
  readonly #failures = new Map<string, PaddockError>()
  #heldBytes = 0

  constructor(parts: VerificationsParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
  }

  /**
   * Takes work in, or finds what became of it, and waits for its verdict. Throws `WORK_REFUSED`, `TASK_UNSUPPORTED`,
   * `VERIFY_KEY_TAKEN`, `VERIFY_FULL`, and `VERIFY_FAILED` where it failed while somebody waited.
   */
  async verify(asked: AskedWork, o: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<Verification> {
    const known = await this.#turns.take(asked.key, () => this.#take(asked))
    return 'ended' in known ? this.#wait(asked.key, known, o) : { state: 'done', record: known }
  }

  /** How a verification stands, perhaps after a while. Throws `NOT_FOUND`, and `VERIFY_FAILED` for one that came to nothing. */
  async look(key: string, o: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<Verification> {
    const job = this.#jobs.get(key)
    if (job !== undefined) return this.#wait(key, job, o)
    const record = await this.#parts.store.catalogue.verification(key)
    if (record !== null) return { state: 'done', record }
    throw (
      this.#failures.get(key) ??
      new PaddockError('NOT_FOUND', `nothing was asked to be verified under the key ${JSON.stringify(key)}`, {
        fix: 'Ask for it; what was under way when Paddock stopped has to be asked for again.',
      })
    )
  }

  /** Stops what is under way, none of which gets a verdict. */
  async close(): Promise<void> {
    this.#stop.abort(new PaddockError('OWNER_STOPPING', 'Paddock stops'))
    await Promise.allSettled([...this.#jobs.values()].map(({ ended }) => ended))
  }

  async #take(work: AskedWork): Promise<Job | VerificationRecord> {
    const { key, runId, task, archive, answer } = work
    const asked = sha256(JSON.stringify([runId, task, archive === null ? null : sha256(archive), answer]))
    const known = this.#jobs.get(key) ?? (await this.#parts.store.catalogue.verification(key))
    if (known !== null) {
      if (known.asked === asked) return known
      throw keyTaken(key)
    }
    this.#requireRoom(0)
    const found = await this.#find(work)
    const bytes = found.sizeBytes
    this.#requireRoom(bytes)
    // So that it can be named by its digest, whatever becomes of its run.
    await this.#parts.store.catalogue.putTask(found.task)
    this.#failures.delete(key)
    this.#heldBytes += bytes
    const ended = this.#run(work, asked, found).finally(() => {
      this.#jobs.delete(key)
      this.#heldBytes -= bytes
    })
    // Whoever waits hears of it, or whoever looks.
    ended.catch((error: unknown) => this.#fail(key, error))
    const job = { asked, ended }
    this.#jobs.set(key, job)
    return job
  }

  #requireRoom(bytes: number): void {
    if (this.#stop.signal.aborted) throw this.#stop.signal.reason
    if (this.#jobs.size < mostWaiting && this.#heldBytes + bytes <= mostHeldBytes) return
    throw new PaddockError('VERIFY_FULL', `${this.#jobs.size} verifications are under way or wait`)
  }

  /** The task, and what was brought as its verifier takes it. */
  async #find({ task: named, runId, archive, answer }: AskedWork): Promise<Found> {
    const { store, own } = this.#parts
    const run = runId === null ? null : trainerRunOf(await store.catalogue.run(runId)).own
    const task = runId === null || run === null ? await store.catalogue.task(named) : await own.task(runId, named)
    if (task.environment === 'none') throw unsupported(task, 'nothing verifies a bare instruction')
    const environment = await this.#parts.environment(task.environment, run)
    const outside = environment.outside(task)
    if (outside === null) {
      throw unsupported(task, `the environment ${environment.name} verifies only what was done in boxes of Paddock`)
    }
    using _place = await this.#reading.enter(this.#stop.signal)
    const items = archive === null ? [] : await broughtItems(archive, outside.places)
    const work = outside.artifacts({ items, answer }).items.filter(({ content }) => content.found)
    return { task, environment, ...(await packed(work)) }
  }

  async #run({ key: id, token }: AskedWork, asked: Digest, found: Found): Promise<VerificationRecord> {
    const { task } = found
    const draft = await this.#draft(found)
    if (draft.reward === null && isFault(draft)) throw failed(task, draft.reason)
    const evidence = `${draft.evidence}\n${howItCame}`.slice(-evidenceLimit)
    const record = { id, asked, taskDigest: task.digest, at: this.#clock.now(), token, verdict: { ...draft, evidence } }
    const stands = await this.#parts.store.catalogue.putVerification(record)
    if (stands.asked === asked) return stands
    throw keyTaken(id)
  }

  async #draft({ task, environment, work, blobs }: Found): Promise<VerdictDraft> {
    const own = environment.box(task).verifyTimeoutMs
    const budgetMs = stageMs('verifyMs', own === null ? null : own + boxMarginMs, runBudgets(this.#parts.budgets ?? {}))
    const { name, verifierVersion } = environment
    const order = { task, environment: { name, verifierVersion }, work, toolCalls: null, budgetMs, labels: {} }
    const asked = { order, environment, blobs, root: task.source }
    const came = await this.#parts.jobs.verify(asked, this.#stop.signal).catch((error: unknown) => {
      if (this.#stop.signal.aborted) throw this.#stop.signal.reason
      throw failed(task, faultLine(error), error)
    })
    if ('missing' in came) throw failed(task, came.missing)
    return came
  }

  async #wait(
    key: string,
    { ended }: Job,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<Verification> {
    const over = new AbortController()
    try {
      const late = setTimeout(waitMs, null, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => null)
      const record = await Promise.race([ended, late])
      return record === null ? { state: 'pending', key } : { state: 'done', record }
    } finally {
      over.abort()
    }
  }

  #fail(key: string, error: unknown): void {
    const known = isPaddockError(error) ? error : new PaddockError('INTERNAL', faultLine(error), { cause: error })
    this.#failures.set(key, known)
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > mostFailures && oldest !== undefined) this.#failures.delete(oldest)
    if (!this.#stop.signal.aborted) this.#parts.onFailure(key, known)
  }
}

/** As the blobs of a store would hold it; kept here as long as somebody waits. */
async function packed(items: readonly ArtifactItem[]): Promise<Pick<Found, 'work' | 'blobs' | 'sizeBytes'>> {
  const packs = await Promise.all(items.map(packArtifact))
  const known = new Map(packs.map(({ sha256: name, data }) => [name, data]))
  const get = async (name: Digest): Promise<Uint8Array> => {
    const data = known.get(name)
    if (data === undefined) throw new PaddockError('NOT_FOUND', `nothing that was brought has the digest ${name}`)
    return data
  }
  return {
    work: {
      artifacts: packs.map(({ path, sha256: name, sizeBytes }) => ({ path, sha256: name, sizeBytes })),
      shared: false,
      cut: false,
    },
    blobs: { get },
    sizeBytes: packs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  }
}

/** Of each verdict: what its evidence cannot show. */
const howItCame = 'The work was brought: nothing of how it was done was looked at.'

function unsupported({ name }: Task, why: string): PaddockError {
  return new PaddockError('TASK_UNSUPPORTED', `Task ${name}: ${why}`, {
    fix: 'Let Paddock do its rollouts, or give the environment `outside`.',
  })
}

function keyTaken(key: string): PaddockError {
  return new PaddockError('VERIFY_KEY_TAKEN', `the key ${JSON.stringify(key)} stands for another verification`)
}

function failed({ name }: Task, why: string, cause?: unknown): PaddockError {
  return new PaddockError('VERIFY_FAILED', `Task ${name} could not be verified: ${why}`, { cause })
}
