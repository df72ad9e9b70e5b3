import { setTimeout } from 'node:timers/promises'
import { type Digest, PaddockError, sha256 } from '../../core/index.ts'
import type { Blobs, BlobsState } from '../contract/index.ts'
import { asStoreError } from '../sqlite/index.ts'
import type { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
import type { Objects } from '../objects/index.ts'

function asPaddockError(error: unknown): PaddockError {
  return asStoreError(error, 'a blob on its way out of the data directory')
}

/** Reads of blobs that are in a store outside of the data directory, or wait in it for that; safe beside their owner. */
export class SpooledBlobReader implements Pick<Blobs, 'get' | 'has' | 'list'> {
  protected readonly objects: Objects
  readonly #spool: DirectoryBlobReader

  constructor(spool: DirectoryBlobReader, objects: Objects) {
    this.#spool = spool
    this.objects = objects
  }

  async get(digest: Digest): Promise<Uint8Array> {
    // It leaves the directory only when it is in the store.
    if (await this.#spool.has(digest)) {
      try {
        return await this.#spool.get(digest)
      } catch (error) {
        if (!(error instanceof PaddockError && error.code === 'NOT_FOUND')) throw error
      }
    }
    const content = await this.objects.get(digest)
    if (content === null) throw new PaddockError('NOT_FOUND', `there is no blob ${digest}`)
    return content
  }

  async has(digest: Digest): Promise<boolean> {
    return (await this.#spool.has(digest)) || (await this.objects.size(digest)) !== null
  }

  /** What waits in the directory, then the store's. */
  async *list(): AsyncIterable<{ readonly digest: Digest; readonly sizeBytes: number }> {
    const waiting = new Set<Digest>()
    for await (const blob of this.#spool.list()) {
      waiting.add(blob.digest)
      yield blob
    }
    for await (const { digest, sizeBytes } of this.objects.list()) if (!waiting.has(digest)) yield { digest, sizeBytes }
  }
}

export interface SpoolOptions {
  /** Most that may wait in the directory while the store is away. */
  readonly spoolBytes: number
  /** How long a blob beyond that waits for the store before `put` ends with its error. Milliseconds. */
  readonly waitMs: number
  /** First pause of the looks at a store that is away; it doubles up to ten times as much. Milliseconds. */
  readonly pauseMs?: number
  /** The store went away, for the reason, or came back (null). */
  readonly onChange?: (why: PaddockError | null) => void
}

/** A blob that is in the directory and not in the store yet. */
interface Waiting {
  readonly sizeBytes: number
  /** How many `put` calls do not know yet what comes of it. */
  asking: number
  /** Somebody was told that it is stored: it stays until it is in the store. */
  promised: boolean
  isUploaded: boolean
}

const uploadsAtOnce = 4
/** A start waits no longer than this for a store that may be away. */
const probeMs = 5000

/**
 * Blobs in an object store, or in a directory that machines share. Each is written into the data directory first and leaves it when the store has it whole, which `put`
 * waits for. While the store is away blobs stay in the directory, up to a bound, and are uploaded when it is back or at the next start:
 * what was stored is never lost. Beyond the bound `put` waits and then throws `BLOBS_UNAVAILABLE`.
 */
export class SpooledBlobs extends SpooledBlobReader implements Blobs {
  readonly #spool: DirectoryBlobs
  readonly #options: SpoolOptions
  readonly #pauseMs: number
  readonly #waiting = new Map<Digest, Waiting>()
  #waitingBytes = 0
  /** One after the other for each digest: nothing is taken out of the directory while it is put there again. */
  readonly #turns = new Map<Digest, Promise<void>>()
  readonly #closing = new AbortController()
  /** Of whoever waits for room. */
  readonly #room = new Set<() => void>()
  #away: PaddockError | null = null
  #failures = 0
  #draining: Promise<void> | null = null

  constructor(spool: DirectoryBlobs, objects: Objects, options: SpoolOptions) {
    super(spool, objects)
    this.#spool = spool
    this.#options = options
    this.#pauseMs = options.pauseMs ?? 1000
  }

  /** Begins to upload what the directory has from before. Throws `BLOBS_REFUSED`. */
  async open(): Promise<void> {
    for await (const { digest, sizeBytes } of this.#spool.list()) this.#wait(digest, sizeBytes).promised = true
    const slow = AbortSignal.timeout(probeMs)
    try {
      await this.objects.probe(slow)
    } catch (error) {
      const what = 'the store of the blobs: no answer'
      const told = slow.aborted ? new PaddockError('BLOBS_UNAVAILABLE', what) : asPaddockError(error)
      if (told.code !== 'BLOBS_UNAVAILABLE') throw told
      this.#failed(told)
    }
    this.#drain()
  }

  state(): BlobsState {
    return {
      waiting: this.#waiting.size,
      waitingBytes: this.#waitingBytes,
      failures: this.#failures,
      away: this.#away?.message ?? null,
      full: this.#isFull(),
    }
  }

  async put(content: Uint8Array): Promise<Digest> {
    const digest = sha256(content)
    const waiting = await this.#inTurn(digest, async () => {
      await this.#spool.put(content)
      const one = this.#wait(digest, content.length)
      one.asking += 1
      if (this.#away === null) {
        await this.#upload(digest).catch((error: unknown) => this.#failed(asPaddockError(error)))
      }
      return one
    })
    if (waiting.isUploaded) return digest
    this.#drain()
    if (this.#isFull()) await this.#roomOr(waiting)
    return this.#inTurn(digest, async () => {
      waiting.asking -= 1
      if (waiting.isUploaded) return digest
      if (!this.#isFull()) {
        waiting.promised = true
        return digest
      }
      const why = this.#away
      if (waiting.asking === 0 && !waiting.promised) {
        this.#over(digest, waiting)
        await this.#spool.remove(digest)
      }
      throw new PaddockError('BLOBS_UNAVAILABLE', why?.message ?? 'the store of the blobs is away', {
        cause: why,
      })
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled([this.#draining, ...this.#turns.values()])
  }

  #wait(digest: Digest, sizeBytes: number): Waiting {
    let waiting = this.#waiting.get(digest)
    if (waiting === undefined) {
      waiting = { sizeBytes, asking: 0, promised: false, isUploaded: false }
      this.#waiting.set(digest, waiting)
      this.#waitingBytes += sizeBytes
    }
    return waiting
  }

  #over(digest: Digest, { sizeBytes }: Waiting): void {
    if (this.#waiting.delete(digest)) this.#waitingBytes -= sizeBytes
    for (const wake of this.#room) wake()
  }

  #isFull(): boolean {
    return this.#away !== null && this.#waitingBytes > this.#options.spoolBytes
  }

  async #inTurn<T>(digest: Digest, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(digest)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#turns.set(digest, promise)
    try {
      await before
      return await work()
    } finally {
      resolve()
      if (this.#turns.get(digest) === promise) this.#turns.delete(digest)
    }
  }

  /** In the digest's turn. */
  async #upload(digest: Digest): Promise<void> {
    const waiting = this.#waiting.get(digest)
    if (waiting === undefined) return
    const content = await this.#spool.get(digest)
    await this.objects.put(digest, new Uint8Array(content), this.#closing.signal)
    await this.#spool.remove(digest)
    waiting.isUploaded = true
    if (this.#away !== null) {
      this.#away = null
      this.#options.onChange?.(null)
    }
    this.#over(digest, waiting)
  }

  #failed(error: PaddockError): void {
    if (this.#closing.signal.aborted) return
    this.#failures += 1
    const was = this.#away
    this.#away = error
    if (was?.code !== error.code) this.#options.onChange?.(error)
  }

  /** Uploads what waits, and goes on trying until nothing does. */
  #drain(): void {
    if (this.#closing.signal.aborted) return
    this.#draining ??= this.#drainAll().finally(() => (this.#draining = null))
  }

  async #drainAll(): Promise<void> {
    const { signal } = this.#closing
    /** Damaged in the directory: `fsck` names them. */
    const damaged = new Set<Digest>()
    for (let pauseMs = this.#pauseMs; !signal.aborted;) {
      const some = [...this.#waiting.keys()].filter((digest) => !damaged.has(digest)).slice(0, uploadsAtOnce)
      if (some.length === 0) return
      const failures = await Promise.all(
        some.map((digest) => this.#inTurn(digest, () => this.#upload(digest)).then(() => null, asPaddockError)),
      )
      for (const [at, digest] of some.entries()) if (failures[at]?.code === 'STORE_CORRUPT') damaged.add(digest)
      const failure = failures.find((one) => one !== null && one.code !== 'STORE_CORRUPT')
      if (failure === undefined || failure === null) {
        pauseMs = this.#pauseMs
        continue
      }
      this.#failed(failure)
      await setTimeout(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
      pauseMs = Math.min(pauseMs * 2, this.#pauseMs * 10)
    }
  }

  /** Resolves when there is room, the blob is in the store, or nobody waits any longer. */
  async #roomOr(waiting: Waiting): Promise<void> {
    const signal = AbortSignal.any([AbortSignal.timeout(this.#options.waitMs), this.#closing.signal])
    while (!waiting.isUploaded && this.#isFull() && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const wake = (): void => resolve()
      this.#room.add(wake)
      signal.addEventListener('abort', wake, { once: true })
      await promise
      this.#room.delete(wake)
      signal.removeEventListener('abort', wake)
    }
  }
}
