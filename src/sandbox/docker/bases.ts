import type Docker from 'dockerode'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { ImageSays } from '../contract/index.ts'
import { ask, statusOf } from './daemon.ts'
import { saysOf } from './image-says.ts'
import { withLock } from './lock.ts'
import { pull, type PullOptions } from './pull.ts'
import { digestOf } from './recipe.ts'
import { type ImageSources, mapped, mirrored } from './references.ts'

/** An image that the daemon has. */
export interface FoundImage {
  readonly id: string
  readonly says: ImageSays
}

export interface BaseImage extends FoundImage {
  /** The name by which the daemon has it. */
  readonly tag: string
  /** Whether this call pulled it. */
  readonly fresh: boolean
}

/** Images of others: by the map, from the daemon, a mirror, or the registry that their names say. */
export class Bases {
  readonly #docker: Docker
  readonly sources: ImageSources

  constructor(docker: Docker, sources: ImageSources) {
    this.#docker = docker
    this.sources = sources
  }

  /** Throws `IMAGE_MISSING`, with the key of the map that would help. */
  async ensure(reference: string, o: PullOptions = {}): Promise<BaseImage> {
    const wanted = mapped(reference, this.sources)
    const names = [...mirrored(wanted, this.sources), wanted]
    const here = async (): Promise<BaseImage | null> => {
      for (const tag of [wanted, ...names.slice(0, -1)]) {
        const found = await this.found(tag)
        if (found !== null) return { tag, ...found, fresh: false }
      }
      return null
    }
    const found = await here()
    if (found !== null) return found
    const making = async (): Promise<BaseImage> => (await here()) ?? this.#pullFirst(reference, names, o)
    return withLock(`image-${digestOf(['reference', wanted])}`, making, o.signal)
  }

  async #pullFirst(reference: string, names: readonly string[], o: PullOptions): Promise<BaseImage> {
    const misses: unknown[] = []
    for (const tag of names) {
      try {
        await pull(this.#docker, tag, o)
        const found = await this.found(tag)
        if (found !== null) return { tag, ...found, fresh: true }
      } catch (error) {
        if (!isPaddockError(error) || error.code !== 'IMAGE_MISSING') throw error
        misses.push(error)
      }
    }
    const words = misses.map((error) => (error instanceof Error ? error.message : String(error)))
    const isMapped = names.at(-1) !== reference
    const of = isMapped ? ` (sandbox.images.map has it for ${reference})` : ''
    const fix = isMapped
      ? `Load it with \`docker load\` or \`docker build\`, or name another image for ${reference}.`
      : `Load it with \`docker load\`, make its registry reachable, or name an image of yours for it: sandbox: { images: { map: { '${reference}': 'my/base:1' } } }.`
    throw new PaddockError('IMAGE_MISSING', `${words.join('; ')}${of}`, { cause: misses.at(-1), fix })
  }

  /** What the daemon says of an image, null where it has none of that name. */
  async found(tag: string): Promise<FoundImage | null> {
    try {
      const facts = await this.#docker.getImage(tag).inspect()
      return { id: facts.Id, says: saysOf(facts) }
    } catch (error) {
      if (statusOf(error) === 404) return null
      return ask('look for an image', Promise.reject(error), 'IMAGE_BUILD_FAILED')
    }
  }
}
