import type Docker from 'dockerode'
import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import { type Clock, PaddockError } from '../../core/index.ts'
import type {
  ArchiveLimits,
  Artifact,
  Box,
  BoxDeath,
  BoxLabels,
  BoxProfile,
  BoxSpec,
  ExecResult,
  ExecSpec,
  FileTree,
  PutFile,
  SandboxEventSink,
  Snapshot,
  SnapshotOptions,
  Terminal,
  TerminalSpec,
} from '../contract.ts'
import { packDirectories, packFiles, packTree } from './archive-in.ts'
import { readArchive } from './archive-out.ts'
import type { AttachedContainer } from './attached.ts'
import { Channel } from './channel.ts'
import { ask, pathExists, statusOf } from './daemon.ts'
import { execEvent } from './events.ts'
import { claimedName, profileUser, programsMount } from './hardened.ts'
import type { DiskWatch } from './disk-watch.ts'
import { commitSnapshot } from './snapshot.ts'
import { BoxTerminal } from './terminal.ts'

const defaultDeadlineMs = 6 * 3600_000

/** What a box is made of, beside its spec. */
export interface BoxParts {
  readonly docker: Docker
  readonly clock: Clock
  readonly onEvent: SandboxEventSink
  /** Image of boxes, image of relays, volume with the in-box programs. */
  readonly image: string
  readonly emptyImage: string
  readonly programs: string
  readonly disk: DiskWatch
}

/** A running box. */
export class DockerBox implements Box {
  readonly id: string
  readonly image: string
  readonly profile: BoxProfile
  readonly workdir: string
  readonly modelUrl: string | null
  readonly died: Promise<BoxDeath>
  readonly channel: Channel
  readonly #parts: BoxParts
  readonly #running: AttachedContainer
  readonly #relay: AttachedContainer | null
  readonly #mounts: readonly string[]
  readonly #death = Promise.withResolvers<BoxDeath>()
  #labels: BoxLabels
  #deadline: NodeJS.Timeout | undefined
  #cause: BoxDeath | null = null
  #ending: Promise<void> | null = null
  #frozen = false
  #told = false

  constructor(
    parts: BoxParts,
    spec: BoxSpec,
    running: AttachedContainer,
    relay: AttachedContainer | null,
    port: number,
  ) {
    this.#parts = parts
    this.#running = running
    this.#relay = relay
    this.#mounts = [programsMount, ...(spec.mounts ?? []).map((mount) => mount.target)]
    this.id = running.id
    this.image = parts.image
    this.profile = spec.profile
    this.workdir = spec.workdir ?? '/workspace'
    this.#labels = spec.labels
    this.modelUrl = relay === null ? null : `http://127.0.0.1:${port}`
    this.died = this.#death.promise
    this.channel = new Channel(running.stream, {
      clock: parts.clock,
      workdir: this.workdir,
      onBroken: (detail) => void this.#end({ why: 'unresponsive', detail }),
    })
    this.#limitAge(spec.deadlineMs)
    if (spec.diskMb !== undefined) {
      const limitBytes = spec.diskMb * 2 ** 20
      const leave = parts.disk.watch({ id: this.id, limitBytes, onFull: () => this.channel.diskIsFull() })
      void this.died.then(leave)
    }
    running.stream.once('close', () => void this.#end(null))
    relay?.stream.once('close', () => void this.#end({ why: 'relay_died', detail: 'the relay of the model path died' }))
  }

  get labels(): BoxLabels {
    return this.#labels
  }

  /** Names the container after the rollout that it was claimed for. For people only, hence nobody waits for it. */
  nameAfter(rollout: string): void {
    this.#running.container.rename({ name: claimedName(rollout) }).catch(() => undefined)
  }

  /** Whether the supervisor of a box that is not frozen answers in time. */
  isAlive(withinMs: number): Promise<boolean> {
    return this.channel.ping(withinMs)
  }

  /** Tells the sink: the box is handed out, to whom, and its time runs from now. */
  handedOut(spec: Pick<BoxSpec, 'labels' | 'deadlineMs'>): void {
    this.#labels = spec.labels
    this.#limitAge(spec.deadlineMs)
    this.#told = true
    this.#parts.onEvent({ kind: 'box', boxId: this.id, phase: 'created', detail: this.image }, this.labels)
  }

  async exec(command: ExecSpec, o: { readonly signal?: AbortSignal } = {}): Promise<ExecResult> {
    const result = await this.channel.exec(command, o.signal)
    const event = execEvent(command, result)
    if (event !== null) this.#parts.onEvent(event, this.labels)
    return result
  }

  openTerminal(spec: TerminalSpec = {}): Terminal {
    return new BoxTerminal(this.channel, spec, this.#parts.clock)
  }

  killBackground(): Promise<void> {
    return this.channel.killBackground()
  }

  async putFiles(directory: string, files: readonly PutFile[] | FileTree): Promise<void> {
    const { uid, gid } = profileUser(this.profile)
    await this.makeDirectory(directory)
    const tar = 'fromDirectory' in files ? packTree(files, uid, gid) : packFiles(files, uid, gid)
    await this.#put(directory, tar)
  }

  async getFiles(path: string, limits?: ArchiveLimits): Promise<Artifact> {
    this.#requireAlive('read files')
    try {
      // The daemon answers with a stream of tar; the typings say less.
      const tar = (await this.#running.container.getArchive({ path })) as Readable
      return await readArchive(tar, limits)
    } catch (error) {
      if (statusOf(error) === 404 && this.#cause === null) {
        return { found: false, entries: [], refused: [], cutShort: false, totalBytes: 0 }
      }
      this.#requireAlive('read files')
      return ask('read files of a box', Promise.reject(error), 'BOX_DEAD')
    }
  }

  async freeze(): Promise<void> {
    this.#requireAlive('freeze')
    if (this.#frozen) return
    await ask('pause a box', this.#running.container.pause(), 'BOX_DEAD')
    this.#frozen = true
    this.channel.frozen()
  }

  async thaw(): Promise<void> {
    this.#requireAlive('thaw')
    if (!this.#frozen) return
    this.channel.thawing()
    await ask('resume a box', this.#running.container.unpause(), 'BOX_DEAD')
    this.#frozen = false
  }

  async snapshot(o: SnapshotOptions = {}): Promise<Snapshot> {
    this.#requireAlive('take a snapshot')
    const thaws = !this.#frozen
    // Paused by us and not by the daemon's commit, so that deadlines stand still.
    await this.freeze()
    try {
      const snapshot = await commitSnapshot(this.#parts.docker, this.#running.container, {
        parent: this.image,
        mounts: this.#mounts,
      })
      const { tag: image } = snapshot.image
      const callId = o.callId ?? null
      this.#parts.onEvent({ kind: 'snapshot', image, parent: snapshot.parent, callId }, this.labels)
      return snapshot
    } finally {
      if (thaws && this.#cause === null) await this.thaw()
    }
  }

  destroy(): Promise<void> {
    return this.#end({ why: 'destroyed', detail: '' })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy()
  }

  /** Makes a directory and what is missing above it, owned by the box's user. Asks the daemon, so it works frozen too. */
  async makeDirectory(path: string): Promise<void> {
    this.#requireAlive('write files')
    const { uid, gid } = profileUser(this.profile)
    const missing: string[] = []
    let at = posix.resolve('/', path)
    while (at !== '/' && !(await pathExists(this.#running.container, at, 'BOX_DEAD'))) {
      missing.unshift(posix.basename(at))
      at = posix.dirname(at)
    }
    if (missing.length > 0) await this.#put(at, packDirectories(missing, uid, gid))
  }

  #limitAge(deadlineMs = defaultDeadlineMs): void {
    clearTimeout(this.#deadline)
    const ms = Math.min(deadlineMs, 2 ** 31 - 1)
    this.#deadline = setTimeout(() => {
      void this.#end({ why: 'deadline', detail: `the box was older than ${ms} ms` })
    }, ms)
    this.#deadline.unref()
  }

  async #put(directory: string, tar: Readable): Promise<void> {
    this.#requireAlive('write files')
    // A fault of packing ends the request; it is the cause to tell, not the cut connection.
    let packing: Error | null = null
    tar.once('error', (error) => (packing = error))
    try {
      await ask('write files into a box', this.#running.container.putArchive(tar, { path: directory }), 'BOX_DEAD')
    } catch (error) {
      throw packing ?? error
    }
  }

  #requireAlive(doing: string): void {
    if (this.#cause === null) return
    throw new PaddockError('BOX_DEAD', `Cannot ${doing}: the box is dead (${this.#cause.why}).`)
  }

  /** The one way out. The first cause counts; null means that the stream ended by itself. */
  #end(cause: BoxDeath | null): Promise<void> {
    this.#ending ??= this.#close(cause)
    return this.#ending
  }

  async #close(cause: BoxDeath | null): Promise<void> {
    clearTimeout(this.#deadline)
    this.#cause = cause ?? { why: 'exited', detail: 'its main process ended' }
    const death = cause ?? (await this.#diagnose())
    this.#cause = death
    // A frozen PID 1 never sees the end of its stdin.
    if (this.#frozen) await this.#running.container.unpause().catch(() => undefined)
    this.channel.close(death)
    const ends = await Promise.allSettled([this.#running.end(), this.#relay?.end()])
    const phase = death.why === 'destroyed' ? 'destroyed' : 'died'
    const detail = `${death.why} ${death.detail}`.trim()
    if (this.#told) this.#parts.onEvent({ kind: 'box', boxId: this.id, phase, detail }, this.labels)
    this.#death.resolve(death)
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined && death.why === 'destroyed') throw failed.reason
  }

  async #diagnose(): Promise<BoxDeath> {
    const facts = await this.#running.container.inspect().catch(() => null)
    if (facts?.State.OOMKilled === true) return { why: 'oom', detail: 'the kernel killed its main process for memory' }
    const silent = this.#running.end().then(() => ({ status: null, detail: '' }))
    const { status, detail } = await Promise.race([this.#running.gone, silent])
    if (detail !== '') return { why: 'daemon', detail }
    const words = this.channel.diagnostics
    return { why: 'exited', detail: `its main process ended with status ${status}${words === '' ? '' : `: ${words}`}` }
  }
}
