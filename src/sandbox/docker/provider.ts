import type Docker from 'dockerode'
import { type Clock, systemClock } from '../../core/index.ts'
import type {
  Box,
  BoxSpec,
  BundleRef,
  BundleSpec,
  ImageOptions,
  ImageRecipe,
  ImageRef,
  SandboxEventSink,
  SandboxFacts,
  SandboxProvider,
  Slot,
  SweepReport,
} from '../contract.ts'
import { Admission } from './admission.ts'
import { type DockerBox, startBox } from './box.ts'
import { Bundles } from './bundle.ts'
import { connectDaemon } from './daemon.ts'
import { Images } from './images.ts'
import { probeDaemon } from './probe.ts'
import { programsBundle } from './programs.ts'
import { DockerSlot } from './slot.ts'
import { sweepLeftovers } from './sweep.ts'

export interface DockerProviderOptions {
  /** Default: `DOCKER_HOST`, else the usual socket. */
  readonly socketPath?: string
  readonly clock?: Clock
  readonly onEvent?: SandboxEventSink
}

/** Boxes in the Docker daemon of this machine. Nothing is asked of the daemon before the first call. */
export function dockerProvider(options: DockerProviderOptions = {}): SandboxProvider {
  return new DockerProvider(options)
}

class DockerProvider implements SandboxProvider {
  readonly name = 'docker'
  readonly #docker: Docker
  readonly #clock: Clock
  readonly #onEvent: SandboxEventSink
  readonly #images: Images
  readonly #bundles: Bundles
  readonly #admission: Admission
  readonly #boxes = new Set<DockerBox>()
  readonly #slots = new Set<DockerSlot>()
  readonly #closing = new AbortController()

  constructor(options: DockerProviderOptions) {
    this.#docker = connectDaemon(options.socketPath)
    this.#clock = options.clock ?? systemClock
    this.#onEvent = options.onEvent ?? (() => undefined)
    this.#images = new Images(this.#docker)
    this.#bundles = new Bundles(this.#docker, this.#images)
    this.#admission = new Admission(this.#clock)
  }

  probe(): Promise<SandboxFacts> {
    return probeDaemon(this.#docker)
  }

  ensureImage(recipe: ImageRecipe, o?: ImageOptions): Promise<ImageRef> {
    return this.#images.ensure(recipe, o)
  }

  ensureBundle(spec: BundleSpec, o?: ImageOptions): Promise<BundleRef> {
    return this.#bundles.ensure(spec, o)
  }

  async createBox(spec: BoxSpec, o: { readonly signal?: AbortSignal } = {}): Promise<Box> {
    const signal = AbortSignal.any([this.#closing.signal, ...(o.signal === undefined ? [] : [o.signal])])
    const programs = await this.#bundles.ensure(programsBundle(this.#docker, this.#images), { signal })
    const empty = await this.#images.empty({ signal })
    const parts = {
      docker: this.#docker,
      clock: this.#clock,
      onEvent: this.#onEvent,
      image: typeof spec.image === 'string' ? spec.image : spec.image.tag,
      emptyImage: empty.tag,
      programs: programs.volume,
    }
    const box = await this.#admission.run(() => startBox(parts, spec, signal), signal)
    this.#boxes.add(box)
    void box.died.then(() => this.#boxes.delete(box))
    return box
  }

  async openSlot(): Promise<Slot> {
    const slot = await DockerSlot.open()
    this.#slots.add(slot)
    slot.onClosed = () => this.#slots.delete(slot)
    return slot
  }

  sweep(o: { readonly dryRun?: boolean } = {}): Promise<SweepReport> {
    return sweepLeftovers(this.#docker, o.dryRun ?? false)
  }

  async close(): Promise<void> {
    this.#closing.abort(new DOMException('the sandbox provider was closed', 'AbortError'))
    await Promise.allSettled([...this.#boxes].map((box) => box.destroy()))
    await Promise.allSettled([...this.#slots].map((slot) => slot.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
