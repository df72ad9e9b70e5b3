import type Docker from 'dockerode'
import { randomBytes } from 'node:crypto'
import { type Clock, PaddockError, systemClock } from '../../core/index.ts'
import type {
  Box,
  BoxPause,
  BoxSpec,
  BoxWish,
  BundleRef,
  BundleSpec,
  ImageOptions,
  ImageRecipe,
  ImageRef,
  SandboxEventSink,
  SandboxFacts,
  SandboxProvider,
  ModelSocket,
  SweepReport,
  WarmSpec,
} from '../contract/index.ts'
import { abortable } from './abortable.ts'
import { Admission } from './admission.ts'
import type { BoxParts, DockerBox } from './box.ts'
import { Bundles } from './bundle.ts'
import { connectDaemon, connectForAttach, requireAble } from './daemon.ts'
import { noteImageUse } from './image-use.ts'
import { Images } from './images.ts'
import { DiskWatch } from './disk-watch.ts'
import { probeDaemon } from './probe.ts'
import { programsBundle } from './programs.ts'
import { startReaper } from './reaper.ts'
import type { ImageSources } from './references.ts'
import { DockerSlot } from './model-socket.ts'
import { NamesVolume } from './names-volume.ts'
import { seesOurFiles } from './near.ts'
import { type DaemonOptions, wholePlace } from './place.ts'
import { seccompOptions } from './seccomp.ts'
import { removeLeftOf } from './snapshot.ts'
import { WarmBoxes } from './warm-boxes.ts'
import { startBox } from './start-box.ts'
import { buildCacheBytes, sweepLeftovers } from './sweep.ts'
import { UpperDirectories } from './touched.ts'

export interface DockerProviderOptions extends DaemonOptions {
  readonly clock?: Clock
  readonly onEvent?: SandboxEventSink
  /** How many boxes of each role may be made ahead and wait. 0: none. Default 4. */
  readonly warmBoxes?: number
  /**
   * Whether they wait paused. Default false: a running box that does nothing costs nothing, is claimed sooner, and ends by
   * itself with its owner; a paused one is left to the reaper.
   */
  readonly parkWarmBoxes?: boolean
  /** Whether a small process beside this one sweeps when this one dies. Default true. */
  readonly reaper?: boolean
  /**
   * Part of the daemon's disk that may be full before {@link SandboxProvider.sweep} removes task images, those that were not
   * used for longest first. Default 0.85.
   */
  readonly diskWatermark?: number
  /** Container runtime of boxes, a name that the daemon knows (`runsc`, `kata`). Default: the daemon's own. Relays keep that. */
  readonly runtime?: string
  /** Images that stand for others, and mirrors of Docker Hub. Default: none. */
  readonly images?: Partial<ImageSources>
}

/** Boxes in a Docker daemon, of this machine or another. Nothing is asked of the daemon before the first call. */
export function dockerProvider(options: DockerProviderOptions = {}): SandboxProvider {
  return new DockerProvider(options)
}

class DockerProvider implements SandboxProvider {
  readonly name = 'docker'
  readonly #id = randomBytes(8).toString('hex')
  readonly #docker: Docker
  readonly #forAttach: Docker
  readonly #clock: Clock
  readonly #onEvent: SandboxEventSink
  readonly #images: Images
  readonly #sources: ImageSources
  readonly #bundles: Bundles
  readonly #admission: Admission
  readonly #warm: WarmBoxes
  readonly #diskWatermark: number
  readonly #runtime: string | null
  readonly #disk: DiskWatch
  readonly #upper: UpperDirectories
  readonly #at: DaemonOptions
  readonly #hasReaper: boolean
  #endReaper: (() => void) | null = null
  #pauses = 0
  readonly #starting = new Set<Promise<DockerBox>>()
  readonly #boxes = new Set<DockerBox>()
  readonly #sockets = new Set<DockerSlot>()
  readonly #closing = new AbortController()
  #parts: Promise<CommonParts> | null = null

  constructor(options: DockerProviderOptions) {
    this.#at = wholePlace(options)
    this.#docker = connectDaemon(this.#at)
    this.#sources = { map: options.images?.map ?? {}, mirrors: options.images?.mirrors ?? [] }
    this.#forAttach = connectForAttach(this.#at)
    this.#clock = options.clock ?? systemClock
    this.#onEvent = options.onEvent ?? (() => undefined)
    this.#images = new Images(this.#docker, this.#sources)
    this.#bundles = new Bundles(this.#docker, this.#images, this.#closing.signal)
    this.#admission = new Admission(this.#clock)
    this.#hasReaper = options.reaper ?? true
    this.#disk = new DiskWatch(this.#docker)
    this.#upper = new UpperDirectories(this.#docker)
    this.#diskWatermark = options.diskWatermark ?? 0.85
    this.#runtime = options.runtime ?? null
    this.#warm = new WarmBoxes({
      clock: this.#clock,
      most: options.warmBoxes ?? 4,
      parked: options.parkWarmBoxes ?? false,
      start: (spec) => this.#start(spec, this.#closing.signal),
      openModelSocket: () => {
        this.#watchOver()
        return DockerSlot.open()
      },
    })
  }

  probe(): Promise<SandboxFacts> {
    return probeDaemon(this.#docker, this.#runtime, this.#sources)
  }

  ensureImage(recipe: ImageRecipe, o?: ImageOptions): Promise<ImageRef> {
    this.#watchOver()
    return this.#images.ensure(recipe, o)
  }

  ensureBundle(spec: BundleSpec, o?: ImageOptions): Promise<BundleRef> {
    this.#watchOver()
    return this.#bundles.ensure(spec, o)
  }

  async createBox(spec: BoxSpec, o: { readonly signal?: AbortSignal } = {}): Promise<Box> {
    const signal = AbortSignal.any([this.#closing.signal, ...(o.signal === undefined ? [] : [o.signal])])
    signal.throwIfAborted()
    const starting = this.#claimOrStart(spec, signal)
    this.#starting.add(starting)
    try {
      const box = await starting
      box.handedOut(spec)
      this.#boxes.add(box)
      void box.died.then(() => this.#boxes.delete(box))
      return box
    } finally {
      this.#starting.delete(starting)
    }
  }

  prefetch(spec: WarmSpec): BoxWish {
    return this.#warm.want(spec)
  }

  async pauseBoxes(): Promise<BoxPause> {
    this.#pauses += 1
    const missed = this.#pauses === 1 ? await this.#eachAgentBox((box) => box.hold('pause')) : []
    let over = false
    return {
      missed,
      [Symbol.asyncDispose]: async () => {
        if (over) return
        over = true
        this.#pauses -= 1
        if (this.#pauses > 0) return
        const [stuck] = await this.#eachAgentBox((box) => box.release('pause'))
        if (stuck !== undefined) throw stuck.why
      },
    }
  }

  async openModelSocket(): Promise<ModelSocket> {
    this.#watchOver()
    const socket = await DockerSlot.open()
    this.#sockets.add(socket)
    socket.onClosed = () => this.#sockets.delete(socket)
    return socket
  }

  async sweep(o: Parameters<SandboxProvider['sweep']>[0] = {}): Promise<SweepReport> {
    const report = await sweepLeftovers(this.#docker, o.dryRun ?? false, this.#diskWatermark)
    return { ...report, buildCacheBytes: o.buildCache === true ? await buildCacheBytes(this.#docker) : null }
  }

  async close(): Promise<void> {
    this.#closing.abort(new DOMException('the sandbox provider was closed', 'AbortError'))
    await this.#warm.close()
    await Promise.allSettled(this.#starting)
    await Promise.allSettled([...this.#boxes].map((box) => box.destroy()))
    await Promise.allSettled([...this.#sockets].map((socket) => socket.close()))
    const parts = await this.#parts?.catch(() => null)
    if (this.#parts !== null) await removeLeftOf(this.#docker, this.#id).catch(() => undefined)
    await parts?.names?.remove().catch(() => undefined)
    this.#endReaper?.()
    this.#endReaper = null
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Those at which it failed; a box that dies meanwhile has its own way of telling it. */
  async #eachAgentBox(work: (box: DockerBox) => Promise<void>): Promise<BoxPause['missed']> {
    const boxes = [...this.#boxes].filter((box) => box.labels.role === 'agent')
    const ends = await Promise.allSettled(boxes.map(work))
    return boxes.flatMap((box, i) => {
      const end = ends[i]
      return end?.status === 'rejected' && this.#boxes.has(box) ? [{ boxId: box.id, why: end.reason }] : []
    })
  }

  async #claimOrStart(spec: BoxSpec, signal: AbortSignal): Promise<DockerBox> {
    const warm = await this.#warm.claim(spec)
    if (warm === null) return this.#start(spec, signal)
    if (spec.labels.rollout !== undefined) warm.nameAfter(spec.labels.rollout)
    if (!signal.aborted) return warm
    await warm.destroy()
    throw signal.reason
  }

  async #start(spec: BoxSpec, signal: AbortSignal): Promise<DockerBox> {
    const common = await abortable(this.#common(), signal)
    const image = typeof spec.image === 'string' ? spec.image : spec.image.tag
    noteImageUse(image, new Date(this.#clock.now()))
    const parts = {
      docker: this.#docker,
      forAttach: this.#forAttach,
      clock: this.#clock,
      onEvent: this.#onEvent,
      image,
      disk: this.#disk,
      upper: this.#upper,
      runtime: this.#runtime,
      provider: this.#id,
      ...common,
    }
    return this.#admission.run(() => startBox(parts, spec, signal), signal)
  }

  /** Before the first thing is made that would outlive a kill, also a mere directory. */
  #watchOver(): void {
    if (this.#hasReaper) this.#endReaper ??= startReaper(this.#at)
  }

  /** What every box needs beside its image; asked of the daemon once. */
  #common(): Promise<CommonParts> {
    if (this.#parts === null) {
      this.#parts = this.#makeCommon()
      this.#parts.catch(() => (this.#parts = null))
    }
    return this.#parts
  }

  async #makeCommon(): Promise<CommonParts> {
    await requireAble(this.#docker, this.#runtime)
    this.#watchOver()
    const signal = this.#closing.signal
    const programs = this.#bundles.ensure(programsBundle(this.#docker, this.#images), { signal })
    const empty = this.#images.empty({ signal }).then(({ tag }) => tag)
    const isNear = empty.then(async (image) => {
      const near = await seesOurFiles(this.#docker, [image])
      if (near === null) throw new PaddockError('SANDBOX_UNAVAILABLE', `the image ${image} is gone before it was used`)
      return near
    })
    const [bundle, emptyImage, near, seccomp] = await Promise.all([
      programs,
      empty,
      isNear,
      seccompOptions(this.#docker),
    ])
    const names = near ? await NamesVolume.open(this.#docker, { runtime: this.#runtime, provider: this.#id }) : null
    return { programs: bundle.volume, emptyImage, isNear: near, names, seccomp }
  }
}

type CommonParts = Pick<BoxParts, 'programs' | 'emptyImage' | 'isNear' | 'names' | 'seccomp'>
