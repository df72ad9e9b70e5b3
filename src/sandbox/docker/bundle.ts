import type Docker from 'dockerode'
import { PaddockError } from '../../core/index.ts'
import type { BundleRef, BundleSpec, ImageOptions } from '../contract/index.ts'
import { abortable } from './abortable.ts'
import { packFiles, packTree } from './archive-in.ts'
import { removeByForce } from './attached.ts'
import { ask, daemonFault, pathExists, statusOf } from './daemon.ts'
import { ownedWorkDirectory } from './host-dirs.ts'
import type { Images } from './images.ts'
import { containerLabels, markLabel } from './labels.ts'
import { withLock } from './lock.ts'
import { digestOf } from './recipe.ts'

/** Written last; a volume without it was left half full by somebody who died. */
const completeMark = '.paddock-complete'

/** Name of the volume of a bundle. */
export function bundleVolume({ name, version }: Pick<BundleSpec, 'name' | 'version'>): string {
  return `paddock-${name}-${digestOf([name, version]).slice(0, 16)}`
}

/** Read-only volumes with content that boxes share: in-box programs, harnesses. */
export class Bundles {
  readonly #docker: Docker
  readonly #images: Images
  readonly #closing: AbortSignal
  readonly #known = new Map<string, Promise<BundleRef>>()

  /** Callers share one making, so only `closing` ends it; a caller who gives up stops waiting. */
  constructor(docker: Docker, images: Images, closing: AbortSignal) {
    this.#docker = docker
    this.#images = images
    this.#closing = closing
  }

  ensure(spec: BundleSpec, o: ImageOptions = {}): Promise<BundleRef> {
    if (!/^[a-z0-9][a-z0-9-]{0,40}$/.test(spec.name)) {
      throw new PaddockError('BUNDLE_FAILED', `${JSON.stringify(spec.name)} is no name for a bundle.`, {
        fix: 'Use lower-case letters, digits and dashes.',
      })
    }
    const volume = bundleVolume(spec)
    const known = this.#known.get(volume)
    if (known !== undefined) return abortable(known, o.signal).then((bundle) => ({ ...bundle, fresh: false }))
    const shared = { ...o, signal: this.#closing }
    const made = withLock(`bundle-${volume}`, () => this.#fill(volume, spec, shared), this.#closing)
    this.#known.set(volume, made)
    made.catch(() => this.#known.delete(volume))
    return abortable(made, o.signal)
  }

  async #fill(volume: string, spec: BundleSpec, o: ImageOptions): Promise<BundleRef> {
    const empty = await this.#images.empty(o)
    const existed = await this.#exists(volume)
    if (!existed) await this.#create(volume, spec)
    const container = await ask(
      'create a container',
      this.#docker.createContainer(filler(empty.tag, volume)),
      'BUNDLE_FAILED',
    )
    try {
      if (existed && (await pathExists(container, `/bundle/${completeMark}`, 'BUNDLE_FAILED')))
        return { volume, fresh: false }
      o.onProgress?.(`making bundle ${spec.name} ${spec.version}`)
      const work = ownedWorkDirectory()
      try {
        await this.#make(spec, work.path, o)
        await put(container, packTree({ fromDirectory: work.path }, 0, 0))
        await put(container, packFiles([{ path: completeMark, data: spec.version }], 0, 0))
      } finally {
        work.remove()
      }
      return { volume, fresh: true }
    } finally {
      await removeByForce(container)
    }
  }

  async #make(spec: BundleSpec, directory: string, o: ImageOptions): Promise<void> {
    try {
      await spec.build(directory, o)
    } catch (error) {
      o.signal?.throwIfAborted()
      throw daemonFault(error, `make the bundle ${spec.name}`, 'BUNDLE_FAILED')
    }
  }

  #create(volume: string, spec: BundleSpec): Promise<unknown> {
    const labels = { [markLabel]: 'bundle', 'paddock.bundle': spec.name, 'paddock.version': spec.version }
    return ask('create a volume', this.#docker.createVolume({ Name: volume, Labels: labels }), 'BUNDLE_FAILED')
  }

  async #exists(volume: string): Promise<boolean> {
    try {
      await this.#docker.getVolume(volume).inspect()
      return true
    } catch (error) {
      if (statusOf(error) === 404) return false
      return ask('look for a volume', Promise.reject(error), 'BUNDLE_FAILED')
    }
  }
}

/** Never started: the daemon copies into the volumes of a container that only exists. */
function filler(image: string, volume: string): Docker.ContainerCreateOptions {
  return {
    Image: image,
    Entrypoint: ['/never-started'],
    Labels: containerLabels('work'),
    HostConfig: { NetworkMode: 'none', Mounts: [{ Type: 'volume', Source: volume, Target: '/bundle' }] },
  }
}

async function put(container: Docker.Container, tar: NodeJS.ReadableStream): Promise<void> {
  let packing: Error | null = null
  tar.once('error', (error: Error) => (packing = error))
  try {
    await ask('fill a volume', container.putArchive(tar, { path: '/bundle' }), 'BUNDLE_FAILED')
  } catch (error) {
    throw packing ?? error
  }
}
