import type Docker from 'dockerode'
import { posix } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type Clock, PaddockError } from '../../core/index.ts'
import type {
  ArchiveLimits,
  Artifact,
  Box,
  BoxChange,
  BoxDeath,
  BoxLabels,
  BoxLayer,
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
} from '../contract/index.ts'
import { packFiles, packTree } from './archive-in.ts'
import { readArchive } from './archive-out.ts'
import type { AttachedContainer } from './attached.ts'
import { Channel } from './channel.ts'
import { ask, daemonFault, messageOf, pathExists, statusOf } from './daemon.ts'
import { askOfFiles, requirePackable } from './files-fault.ts'
import { takeLayer } from './layer.ts'
import { execEvent } from './events.ts'
import { claimedName, profileUser, programsMount } from './hardened.ts'
import { type HoldReason, Holds } from './holds.ts'
import { getInside, putInside } from './inside.ts'
import { nameFiles, type NamesVolume } from './names-volume.ts'
import type { DiskWatch } from './disk-watch.ts'
import { commitSnapshot } from './snapshot.ts'
import { BoxTerminal } from './terminal.ts'
import type { UpperDirectories } from './touched.ts'

const defaultDeadlineMs = 6 * 3600_000

/** Largest snapshot of a box without a `diskMb`. */
const defaultSnapshotMb = 10_240

/** `GET /containers/{id}/changes` (Docker Engine API, "Get changes on a container's filesystem"). */
const changesShape = z.array(z.object({ Path: z.string(), Kind: z.int() }))
const changeKinds = ['modified', 'added', 'deleted'] as const

/** With the waits between them, about a quarter of a minute. */
const pauseTries = 20

/**
 * The freezer of cgroup v1 gives up ("unable to freeze") when processes come and go faster than it can stop them, or when
 * the machine is busy (runc, libcontainer/cgroups/fs/freezer.go); that must not be a way out for an agent.
 */
async function pauseSurely(container: Docker.Container): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await container.pause()
      return
    } catch (error) {
      if (tries === pauseTries || !/unable to freeze/i.test(messageOf(error))) throw error
      await sleep(Math.min(1000, 50 * 2 ** tries))
    }
  }
}

function isUnfit(error: unknown): boolean {
  return error instanceof PaddockError && error.code === 'BOX_FILES_UNFIT'
}

/** What a box is made of, beside its spec. */
export interface BoxParts {
  readonly docker: Docker
  /** The same daemon, for what is read by `takeBytes`. */
  readonly forAttach: Docker
  readonly clock: Clock
  readonly onEvent: SandboxEventSink
  /** Image of boxes, image of relays, volume with the in-box programs. */
  readonly image: string
  readonly emptyImage: string
  readonly programs: string
  /** Id of the provider, for what it makes. */
  readonly provider: string
  /** Whether the daemon sees our files; where not, the model path goes over the relay's stream. */
  readonly isNear: boolean
  /** Where boxes without egress have their files of names; null: the daemon makes them. */
  readonly names: NamesVolume | null
  readonly disk: DiskWatch
  readonly upper: UpperDirectories
  /** Container runtime of the box; null: the daemon's default. */
  readonly runtime: string | null
  /** Security options of boxes and relays that set their seccomp profile; empty where the daemon has no seccomp. */
  readonly seccomp: readonly string[]
}

/** A running box. */
export class DockerBox implements Box {
  readonly id: string
  readonly image: string
  readonly profile: BoxProfile
  readonly workdir: string
  readonly imageUser: string | null
  readonly imagePath: readonly string[]
  readonly modelUrl: string | null
  readonly wayOut: Box['wayOut']
  readonly died: Promise<BoxDeath>
  readonly channel: Channel
  readonly #parts: BoxParts
  readonly #running: AttachedContainer
  readonly #relay: AttachedContainer | null
  readonly #mounts: readonly string[]
  readonly #short: string | null
  readonly #diskMb: number
  readonly #death = Promise.withResolvers<BoxDeath>()
  #labels: BoxLabels
  #deadline: NodeJS.Timeout | undefined
  #cause: BoxDeath | null = null
  #ending: Promise<void> | null = null
  readonly #holds = new Holds({
    freeze: async () => {
      await ask('pause a box', pauseSurely(this.#running.container), 'BOX_DEAD')
      this.channel.frozen()
    },
    thaw: async () => {
      this.channel.thawing()
      await ask('resume a box', this.#running.container.unpause(), 'BOX_DEAD')
    },
  })
  #told = false

  constructor(
    parts: BoxParts,
    spec: BoxSpec,
    running: AttachedContainer,
    path: {
      readonly relay: AttachedContainer | null
      readonly port: number
      /** Why the relay has the explicit proxy only; null where it could do all that it was asked for. */
      readonly short: string | null
    },
  ) {
    const { relay, port } = path
    this.wayOut = (spec.egress ?? 'none') === 'none' ? 'none' : path.short === null ? 'transparent' : 'asked'
    this.#short = path.short
    this.#parts = parts
    this.#running = running
    this.#relay = relay
    this.#mounts = [programsMount, ...nameFiles, ...(spec.mounts ?? []).map((mount) => mount.target)]
    this.id = running.id
    this.image = parts.image
    this.profile = spec.profile
    this.workdir = spec.workdir ?? '/workspace'
    const says = typeof spec.image === 'string' ? undefined : spec.image.says
    this.imageUser = says?.user ?? null
    this.imagePath = says?.path ?? []
    this.#labels = spec.labels
    this.modelUrl = relay === null ? null : `http://127.0.0.1:${port}`
    this.died = this.#death.promise
    this.channel = new Channel(running.stream, {
      clock: parts.clock,
      workdir: this.workdir,
      onBroken: (detail) => void this.#end({ why: 'unresponsive', detail }),
    })
    this.#limitAge(spec.deadlineMs)
    this.#diskMb = spec.diskMb ?? defaultSnapshotMb
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
    this.#running.container.rename({ name: claimedName(rollout, this.id) }).catch(() => undefined)
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
    const detail = this.#short === null ? this.image : `${this.image}, egress by proxy only: ${this.#short}`
    this.#parts.onEvent({ kind: 'box', boxId: this.id, phase: 'created', detail }, this.labels)
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
    const { at, missing } = await this.#nearest(directory)
    const { uid, gid } = profileUser(this.profile)
    if ('fromDirectory' in files) return this.#putIn(at, () => packTree(files, uid, gid, { above: missing }))
    const fresh = missing.length > 0 ? files : await this.#withoutDirectoriesIn(directory, files)
    if (missing.length + fresh.length > 0) await this.#putIn(at, () => packFiles(fresh, uid, gid, missing))
  }

  async getFiles(path: string, limits?: ArchiveLimits): Promise<Artifact> {
    this.#requireAlive('read files')
    const nothing = { entries: [], refused: [], cutShort: false, totalBytes: 0 }
    const own = this.#runsOwn ? await getInside(this.channel, path, limits) : null
    if (own !== null) return own
    try {
      await requirePackable(this.#running.container)
      // The daemon answers with a stream of tar; the typings say less.
      return await this.#askOfFiles('read files of a box', async (container) =>
        readArchive((await container.getArchive({ path })) as Readable, limits),
      )
    } catch (error) {
      if (statusOf(error) === 404 && this.#cause === null) return { ...nothing, found: false }
      this.#requireAlive('read files')
      if (!isUnfit(error)) throw error
      return { ...nothing, found: true, refused: [{ path: posix.basename(path), reason: 'unreadable' }] }
    }
  }

  async freeze(): Promise<void> {
    this.#requireAlive('freeze')
    await this.#holds.add('caller')
  }

  async thaw(): Promise<void> {
    this.#requireAlive('thaw')
    await this.#holds.release('caller')
  }

  /** Stands still for as long as any reason holds. A box that has died needs no holding. */
  async hold(reason: HoldReason): Promise<void> {
    if (this.#cause === null) await this.#holds.add(reason)
  }

  async release(reason: HoldReason): Promise<void> {
    if (this.#cause === null) await this.#holds.release(reason)
  }

  async exists(path: string): Promise<boolean> {
    this.#requireAlive('look into it')
    try {
      return await this.#askOfFiles('look into a container', (container) => pathExists(container, path, 'BOX_DEAD'))
    } catch (error) {
      if (isUnfit(error)) return false
      throw error
    }
  }

  touched(o: { readonly except?: readonly string[] } = {}): Promise<readonly string[] | null> {
    this.#requireAlive('list changes')
    return this.#parts.upper.paths(this.#running.container, o.except ?? [])
  }

  async changes(): Promise<readonly BoxChange[]> {
    this.#requireAlive('list changes')
    const list: unknown = await this.#askOfFiles('list changes of a box', (container) => container.changes())
    const own = changesShape
      .parse(list ?? [])
      .map(({ Path, Kind }) => ({ path: Path, kind: changeKinds[Kind] ?? 'modified' }))
    const below = await this.#parts.upper.below(this.#running.container)
    const told = new Set(own.map(({ path }) => path))
    return [...own, ...below.filter((path) => !told.has(path)).map((path) => ({ path, kind: 'modified' as const }))]
  }

  async takeLayer(limits?: ArchiveLimits): Promise<BoxLayer | null> {
    if ((await this.#parts.upper.depth(this.#running.container)) > 0) return null
    return takeLayer(this.#running.container, await this.changes(), { limits, mounts: this.#mounts })
  }

  async applyLayer(layer: BoxLayer): Promise<void> {
    // Before the files of the layer are there: what deletes is still the image's own.
    for (let at = 0; at < layer.deleted.length; at += 500) {
      const command = ['rm', '-rf', '--', ...layer.deleted.slice(at, at + 500)]
      const result = await this.exec({ command, cwd: '/' })
      if (result.kind === 'box_dead') this.#requireAlive('delete files')
      if (result.kind !== 'exited' || result.code !== 0) {
        throw new PaddockError('VERIFIER_FAILED', 'The files of an agent could not be brought back.', {
          fix: 'The image needs rm.',
        })
      }
    }
    await this.#put('/', () => Readable.from([Buffer.from(layer.tar)]))
  }

  async snapshot(o: SnapshotOptions = {}): Promise<Snapshot> {
    this.#requireAlive('take a snapshot')
    // Held by us and not by the daemon's commit, so that deadlines stand still.
    await this.#holds.add('snapshot')
    try {
      const snapshot = await commitSnapshot(this.#parts.docker, this.#running.container, {
        parent: this.image,
        mounts: this.#mounts,
        mostBytes: this.#diskMb * 2 ** 20,
        upper: this.#parts.upper,
        about: this.labels,
        asked: o,
        provider: this.#parts.provider,
      })
      const { parent, kept, image } = snapshot
      const waits = o.request === undefined ? {} : { request: o.request }
      const { without = [] } = o
      const about = {
        parent,
        callId: o.callId ?? null,
        ...waits,
        ...(kept ? { kept: true as const } : {}),
        ...(without.length === 0 ? {} : { without }),
      }
      this.#parts.onEvent({ kind: 'snapshot', image: image.tag, ...about }, this.labels)
      return snapshot
    } finally {
      await this.release('snapshot')
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
    await this.putFiles(path, [])
  }

  /** The nearest directory above that exists, and the names of those that do not. */
  async #nearest(path: string): Promise<{ readonly at: string; readonly missing: readonly string[] }> {
    this.#requireAlive('write files')
    const missing: string[] = []
    let at = posix.resolve('/', path)
    const exists = (path: string) =>
      this.#askOfFiles('look into a container', (container) => pathExists(container, path, 'BOX_DEAD'))
    while (at !== '/' && !(await exists(at))) {
      missing.unshift(posix.basename(at))
      at = posix.dirname(at)
    }
    return { at, missing }
  }

  /** A directory that is there already stays as it is. */
  async #withoutDirectoriesIn(place: string, files: readonly PutFile[]): Promise<readonly PutFile[]> {
    const wanted = files.map(async (file) => {
      const path = posix.join(place, file.path)
      return !file.path.endsWith('/') || !(await pathExists(this.#running.container, path, 'BOX_DEAD'))
    })
    const isWanted = await Promise.all(wanted)
    return files.filter((_, i) => isWanted[i])
  }

  #limitAge(deadlineMs = defaultDeadlineMs): void {
    clearTimeout(this.#deadline)
    const ms = Math.min(deadlineMs, 2 ** 31 - 1)
    this.#deadline = setTimeout(() => {
      void this.#end({ why: 'deadline', detail: `the box was older than ${ms} ms` })
    }, ms)
    this.#deadline.unref()
  }

  /** Whether its root can do at once what the daemon would do from outside. */
  get #runsOwn(): boolean {
    return this.profile === 'root' && !this.#holds.any && this.#cause === null
  }

  async #putIn(directory: string, pack: () => Readable): Promise<void> {
    if (this.#runsOwn && (await putInside(this.channel, directory, pack()))) return
    await this.#put(directory, pack)
  }

  async #put(directory: string, pack: () => Readable): Promise<void> {
    this.#requireAlive('write files')
    // A fault of packing ends the request; it is the cause to tell, not the cut connection.
    let packing: Error | null = null
    try {
      await this.#askOfFiles('write files into a box', (container) => {
        const tar = pack()
        tar.once('error', (error) => (packing = error))
        return container.putArchive(tar, { path: directory })
      })
    } catch (error) {
      throw packing ?? (statusOf(error) === null ? error : daemonFault(error, 'write files into a box', 'BOX_DEAD'))
    }
  }

  #askOfFiles<T>(doing: string, work: (container: Docker.Container) => Promise<T>): Promise<T> {
    const { docker, image } = this.#parts
    return askOfFiles(doing, { docker, image, container: this.#running.container }, work)
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
    if (this.#holds.any) await this.#running.container.unpause().catch(() => undefined)
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
