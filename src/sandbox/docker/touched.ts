import type Docker from 'dockerode'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path/posix'
import { z } from 'zod'
import { ask } from './daemon.ts'

/** Beyond this the daemon's own comparison is no slower. */
const mostPaths = 20_000

/** `Driver` and `DriverStatus` of `GET /info`, `GraphDriver` of `GET /containers/{id}/json` (Docker Engine API 1.41). */
const infoShape = z.object({ Driver: z.string(), DriverStatus: z.array(z.tuple([z.string(), z.string()])).nullish() })
const overlayShape = z.object({ Name: z.literal('overlay2'), Data: z.object({ UpperDir: z.string() }) })

/**
 * What stands in the upper directory of a container on overlay2, in milliseconds, where the daemon walks its whole
 * filesystem twice (`overlay2.Changes` of moby compares naively). Null where that cannot be read, or does not hold
 * everything: with `redirect_dir` a renamed directory keeps its files below.
 */
export class UpperDirectories {
  readonly #docker: Docker
  #complete: Promise<boolean> | null = null

  constructor(docker: Docker) {
    this.#docker = docker
  }

  async paths(container: Docker.Container): Promise<readonly string[] | null> {
    this.#complete ??= this.#holdsEverything()
    if (!(await this.#complete)) return null
    const facts = await ask('look at a box', container.inspect(), 'BOX_DEAD')
    const overlay = overlayShape.safeParse('GraphDriver' in facts ? facts.GraphDriver : null)
    return overlay.success ? pathsBelow(overlay.data.Data.UpperDir) : null
  }

  async #holdsEverything(): Promise<boolean> {
    const info = infoShape.safeParse(await this.#docker.info().catch(() => null))
    if (!info.success || info.data.Driver !== 'overlay2') return false
    return (info.data.DriverStatus ?? []).some(([name, value]) => name === 'Native Overlay Diff' && value === 'true')
  }
}

/** Absolute, as the box sees them. Links are not followed. */
async function pathsBelow(upper: string): Promise<readonly string[] | null> {
  const found: string[] = []
  const waiting = ['/']
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const here = at
    const entries = await readdir(join(upper, here), { withFileTypes: true }).catch(() => null)
    if (entries === null || found.length + entries.length > mostPaths) return null
    for (const entry of entries) {
      const path = join(here, entry.name)
      found.push(path)
      if (entry.isDirectory()) waiting.push(path)
    }
  }
  return found
}
