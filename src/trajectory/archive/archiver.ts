import { setTimeout } from 'node:timers/promises'
import { type Clock, type Digest, type Id, isPaddockError, PaddockError } from '../../core/index.ts'
import type { DirectoryBlobs } from '../blobs/index.ts'
import type { Objects } from '../objects/index.ts'
import type { ArchivedRecord, ArchiveState, Catalogue } from '../contract/index.ts'
import type { ArchivedHere, ArchivedObject, LoggedSession, SealedSession } from '../recorder/index.ts'
import { asStoreError } from '../sqlite/index.ts'

/** What an archiver asks of the log. */
export interface ArchivingLog {
  /** Resolves when what follows is told of all that was recorded. */
  flush(): Promise<void>
  unarchived(after: number): Promise<readonly LoggedSession[]>
  finished(ids: readonly Id[]): Promise<readonly Id[]>
  seal(id: Id): Promise<SealedSession | null>
  archivedSessions(after: number, limit: number): Promise<readonly ArchivedHere[]>
  archivedAmong(objects: readonly Digest[]): Promise<readonly Digest[]>
  archive(sealed: ArchivedObject & { readonly id: Id }): Promise<boolean>
}

/** What has been done with a session: its object is in the archive, the catalogue names it, its records have left the log. */
export type ArchiveStep = 'stored' | 'named' | 'dropped'

export interface ArchiverOptions {
  readonly log: ArchivingLog
  readonly catalogue: Pick<Catalogue, 'rollouts' | 'putArchived' | 'namedObjects'>
  readonly objects: Objects
  /** Objects that a restore put into the data directory. */
  readonly here: DirectoryBlobs
  /** The data directory, by the identity of its log. */
  readonly home: Id
  /** Its folder in the archive. */
  readonly folder: string
  readonly clock: Clock
  /** Between two looks for finished sessions. Milliseconds. */
  readonly pollMs: number
  /** The archive went away, for the reason, or came back (null). */
  readonly onChange: (why: PaddockError | null) => void
  readonly onStep: (step: ArchiveStep, id: Id) => void
}

const atOnce = 500
const longestPauseMs = 60_000
/** Not for owners that open a store to write a line. */
const firstSweepMs = 3600_000
const sweepEveryMs = 24 * 3600_000
/** An object that nothing names may be one that is about to be named, or one of a catalogue that was rewound. */
const graceMs = 24 * 3600_000

/**
 * Moves finished sessions out of the log: their records are stored as an object, read back, named by the catalogue, and only then
 * dropped from the log. Killed at any step, the next owner does the same again: the same records are the same object. While the
 * archive is away sessions stay where they are. One at a time, so that a sweep meets no object that is about to be named.
 */
export class Archiver {
  readonly #o: ArchiverOptions
  /** Sessions whose records are in the log. */
  readonly #pending = new Map<Id, Id | null>()
  /** The last row of sessions that was looked at. */
  #after = 0
  readonly #damaged = new Set<Id>()
  #waiting = 0
  #failures = 0
  #away: PaddockError | null = null
  #isTakenUp = false
  #sweepsAt: number
  #turn: Promise<void> = Promise.resolve()
  readonly #closing = new AbortController()
  #going: Promise<void> | null = null

  constructor(o: ArchiverOptions) {
    this.#o = o
    this.#sweepsAt = o.clock.now() + firstSweepMs
  }

  /** Looks for finished sessions from now on. */
  start(): void {
    this.#going ??= this.#go()
  }

  state(): ArchiveState {
    const { message = null } = this.#away ?? {}
    return { waiting: this.#waiting, damaged: this.#damaged.size, failures: this.#failures, away: message }
  }

  /** Archives what is finished by now, as far as the archive is to be had. */
  round(): Promise<void> {
    return this.#inTurn(() => this.#round())
  }

  /** Removes objects that nothing names and that are older than the grace. Returns how many. */
  sweep(olderThanMs = graceMs): Promise<number> {
    return this.#inTurn(() => this.#sweep(olderThanMs))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled([this.#turn, this.#going])
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.then(
      () => undefined,
      () => undefined,
    )
    return done
  }

  async #go(): Promise<void> {
    const { signal } = this.#closing
    let { pollMs } = this.#o
    while (!signal.aborted) {
      await this.round()
      pollMs = this.#away === null ? this.#o.pollMs : Math.min(2 * pollMs, longestPauseMs)
      await setTimeout(pollMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #round(): Promise<void> {
    try {
      const finished = await this.#finished()
      this.#waiting = finished.length
      await this.#takeUp()
      for (const id of finished) {
        if (this.#closing.signal.aborted) return
        if (await this.#archive(id)) this.#waiting -= 1
        this.#isBack()
      }
      const now = this.#o.clock.now()
      if (now < this.#sweepsAt) return
      await this.#sweep(graceMs)
      this.#sweepsAt = now + sweepEveryMs
      this.#isBack()
    } catch (error) {
      this.#failed(asStoreError(error, 'the archive'))
    }
  }

  /** Closed, with all of their calls at an end, and of no rollout that goes on. */
  async #finished(): Promise<readonly Id[]> {
    const { log, catalogue } = this.#o
    await log.flush()
    for (const { n, id, rolloutId } of await log.unarchived(this.#after)) {
      this.#pending.set(id, rolloutId)
      this.#after = n
    }
    const closed = (await log.finished([...this.#pending.keys()])).filter((id) => !this.#damaged.has(id))
    const ended = new Set<Id | null>([null])
    for (const ids of batches([...new Set(closed.flatMap((id) => this.#pending.get(id) ?? []))])) {
      for (const { id, end } of await catalogue.rollouts({ ids })) if (end !== null) ended.add(id)
    }
    return closed.filter((id) => ended.has(this.#pending.get(id) ?? null))
  }

  /** False: it went on meanwhile, or cannot be read. */
  async #archive(id: Id): Promise<boolean> {
    const { log, catalogue, onStep } = this.#o
    const sealed = await this.#orDamaged(id, () => log.seal(id))
    if (sealed === null) return false
    await this.#store(sealed.object, sealed.bytes)
    onStep('stored', id)
    await catalogue.putArchived([this.#recordOf(sealed)])
    onStep('named', id)
    const { object, count, head } = sealed
    const dropped = await this.#orDamaged(id, () => log.archive({ id, object, count, head }))
    if (dropped !== true) return false
    onStep('dropped', id)
    this.#pending.delete(id)
    return true
  }

  async #orDamaged<T>(id: Id, read: () => Promise<T>): Promise<T | null> {
    try {
      return await read()
    } catch (error) {
      if (!isPaddockError(error) || error.code !== 'STORE_CORRUPT') throw error
      this.#damaged.add(id)
      return null
    }
  }

  /** What is dropped here afterwards was read there before. */
  async #store(object: Digest, bytes: Uint8Array): Promise<void> {
    const { objects } = this.#o
    const key = objects.keyOf(object)
    await objects.put(object, new Uint8Array(bytes), this.#closing.signal)
    const isThere = await objects.get(object, this.#closing.signal).catch((error: unknown) => {
      if (isPaddockError(error) && error.code === 'STORE_CORRUPT') return null
      throw error
    })
    if (isThere === null) throw new PaddockError('ARCHIVE_UNAVAILABLE', `${key} was written and cannot be read back`)
  }

  #recordOf({ id, rolloutId, ofRollout, object, count, head }: Omit<ArchivedHere, 'n'>): ArchivedRecord {
    const { home, folder } = this.#o
    return { sessionId: id, rolloutId, ofRollout, home, folder, object, count, head }
  }

  /** Objects that came with a restore, and what a catalogue does not name that was rewound or is another. */
  async #takeUp(): Promise<void> {
    if (this.#isTakenUp) return
    const { here, log, catalogue, folder } = this.#o
    for await (const { digest } of here.list()) {
      // One that is damaged stays: `paddock fsck` names it.
      const bytes = await here.get(digest).catch(() => null)
      if (bytes === null) continue
      await this.#store(digest, bytes)
      await here.remove(digest)
    }
    for (let after = 0; ;) {
      const some = await log.archivedSessions(after, atOnce)
      const last = some.at(-1)
      if (last === undefined) break
      after = last.n
      const named = new Set(
        await catalogue.namedObjects(
          folder,
          some.map(({ object }) => object),
        ),
      )
      const unnamed = some.filter(({ object }) => !named.has(object))
      if (unnamed.length > 0) await catalogue.putArchived(unnamed.map((one) => this.#recordOf(one)))
    }
    this.#isTakenUp = true
  }

  async #sweep(olderThanMs: number): Promise<number> {
    const { objects, catalogue, log, folder, clock } = this.#o
    const before = clock.now() - olderThanMs
    let removed = 0
    const removeUnnamed = async (some: readonly Digest[]): Promise<void> => {
      const named = new Set([...(await catalogue.namedObjects(folder, some)), ...(await log.archivedAmong(some))])
      for (const digest of some) {
        if (named.has(digest)) continue
        await objects.remove(digest)
        removed += 1
      }
    }
    let old: Digest[] = []
    for await (const { digest, at } of objects.list(this.#closing.signal)) {
      if (at === null || at >= before) continue
      old.push(digest)
      if (old.length < atOnce) continue
      await removeUnnamed(old)
      old = []
    }
    if (old.length > 0) await removeUnnamed(old)
    return removed
  }

  #isBack(): void {
    if (this.#away === null) return
    this.#away = null
    this.#o.onChange(null)
  }

  #failed(error: PaddockError): void {
    if (this.#closing.signal.aborted) return
    this.#failures += 1
    const was = this.#away
    this.#away = error
    if (was?.code !== error.code) this.#o.onChange(error)
  }
}

function batches<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / atOnce) }, (_, at) => all.slice(at * atOnce, (at + 1) * atOnce))
}
