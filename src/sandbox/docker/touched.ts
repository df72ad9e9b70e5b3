import type Docker from 'dockerode'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path/posix'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { ask } from './daemon.ts'
import { depthLabel } from './labels.ts'

/** A few times what the largest installations of packages have. Listing or copying so many takes half a minute. */
const defaultMostFiles = 300_000

/** Longest path that the kernel takes (PATH_MAX). What lies deeper cannot be opened by its path by anybody. */
const longestPath = 4095

/** `Driver` and `DriverStatus` of `GET /info`, `GraphDriver` of `GET /containers/{id}/json` (Docker Engine API 1.41). */
const infoShape = z.object({ Driver: z.string(), DriverStatus: z.array(z.tuple([z.string(), z.string()])).nullish() })
const overlayShape = z.object({
  Name: z.literal('overlay2'),
  Data: z.object({ UpperDir: z.string(), LowerDir: z.string().default('') }),
})

/** Where a container's own files stand, and those of the snapshots that it lies on, uppermost first. */
interface Layers {
  readonly upper: string
  readonly snapshots: readonly string[]
}

/**
 * What stands in the upper directory of a container on overlay2, in milliseconds, where the daemon walks its whole
 * filesystem twice (`overlay2.Changes` of moby compares naively). Null where that cannot be read, or does not hold
 * everything: with `redirect_dir` a renamed directory keeps its files below.
 */
export class UpperDirectories {
  readonly #docker: Docker
  readonly #mostFiles: number
  #complete: Promise<boolean> | null = null

  constructor(docker: Docker, mostFiles = defaultMostFiles) {
    this.#docker = docker
    this.#mostFiles = mostFiles
  }

  /** Absolute, as the box sees them, but for what lies below `except`. Throws `BOX_FILES_UNFIT` for too many. */
  async paths(container: Docker.Container, except: readonly string[] = []): Promise<readonly string[] | null> {
    const layers = await this.#of(container)
    if (layers === null) return null
    const found = new Set<string>()
    for (const layer of [layers.upper, ...layers.snapshots]) {
      const paths = await this.#walk(layer, new Set(except))
      if (paths === null) return null
      for (const path of paths) found.add(path)
    }
    return [...found]
  }

  /** How many snapshots a container's image is. */
  async depth(container: Docker.Container): Promise<number> {
    const { Image } = await ask('look at a box', container.inspect(), 'BOX_DEAD')
    const { Config } = await ask('look at an image', this.#docker.getImage(Image).inspect())
    return Number(Config.Labels?.[depthLabel] ?? 0) || 0
  }

  /** What the snapshots under a container hold. Throws `SANDBOX_CAPABILITY` where there are some that cannot be read. */
  async below(container: Docker.Container): Promise<readonly string[]> {
    if ((await this.depth(container)) === 0) return []
    const layers = await this.#of(container)
    const found: string[] = []
    for (const layer of layers?.snapshots ?? []) found.push(...((await this.#walk(layer, new Set())) ?? []))
    if (layers !== null) return found
    throw new PaddockError('SANDBOX_CAPABILITY', 'What snapshots under a box changed cannot be listed here.')
  }

  /** Bytes that its files take on the disk, holes left out; null where that cannot be told. */
  async bytesOnDisk(container: Docker.Container): Promise<number | null> {
    const upper = (await this.#of(container))?.upper ?? null
    if (upper === null) return null
    const paths = await this.#walk(upper, new Set())
    if (paths === null) return null
    let blocks = 0
    for (const path of paths) blocks += (await lstat(join(upper, path)).catch(() => null))?.blocks ?? 0
    return blocks * 512
  }

  async #of(container: Docker.Container): Promise<Layers | null> {
    this.#complete ??= this.#holdsEverything()
    if (!(await this.#complete)) return null
    const facts = await ask('look at a box', container.inspect(), 'BOX_DEAD')
    const overlay = overlayShape.safeParse('GraphDriver' in facts ? facts.GraphDriver : null)
    if (!overlay.success) return null
    const { UpperDir: upper, LowerDir } = overlay.data.Data
    // The first one below is the daemon's own, with the files that it lays over every container.
    const [, ...below] = LowerDir.split(':')
    return { upper, snapshots: below.length < 2 ? [] : below.slice(0, await this.depth(container)) }
  }

  async #holdsEverything(): Promise<boolean> {
    const info = infoShape.safeParse(await this.#docker.info().catch(() => null))
    if (!info.success || info.data.Driver !== 'overlay2') return false
    return (info.data.DriverStatus ?? []).some(([name, value]) => name === 'Native Overlay Diff' && value === 'true')
  }

  /** Null where a directory cannot be read. Links are not followed, and nothing is looked for below a path that is too long. */
  async #walk(upper: string, except: ReadonlySet<string>): Promise<readonly string[] | null> {
    const found: string[] = []
    const waiting = ['/']
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const here = at
      // As bytes, each a character: a name need not be UTF-8, and must be found again.
      const place = Buffer.from(join(upper, here), 'latin1')
      const entries = await readdir(place, { withFileTypes: true, encoding: 'buffer' }).catch(() => null)
      if (entries === null) return null
      if (found.length + entries.length > this.#mostFiles) {
        throw new PaddockError(
          'BOX_FILES_UNFIT',
          `More than ${this.#mostFiles} files of the box differ from its image.`,
        )
      }
      for (const entry of entries) {
        const path = join(here, entry.name.toString('latin1'))
        const name = Buffer.from(path, 'latin1').toString()
        found.push(name)
        const fits = upper.length + path.length < longestPath
        if (entry.isDirectory() && fits && !except.has(name)) waiting.push(path)
      }
    }
    return found
  }
}
