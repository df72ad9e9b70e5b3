import type Docker from 'dockerode'
import { statfs } from 'node:fs/promises'
import type { SweptObject } from '../contract/index.ts'
import { ask, statusOf } from './daemon.ts'
import { imageUses } from './image-use.ts'
import { markLabel } from './labels.ts'
import { rootHere, seesOurFiles } from './near.ts'

/** An image without a name that is older than this was replaced. */
const unnamedMs = 10 * 60_000

export interface EvictOptions {
  /** Part of the disk that may be full before built images go, 0 to 1. */
  readonly watermark: number
  readonly dryRun: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Part of the disk with the images that is full; null where it is not on this machine. */
  readonly diskUse: () => Promise<number | null>
}

/**
 * Removes task images that lost their name to a newer build, and while the disk is fuller than the watermark those that
 * were not used for longest. Our base images stay, and so does what a container uses. Returns what was removed.
 */
export async function evictImages(docker: Docker, o: EvictOptions): Promise<readonly SweptObject[]> {
  const filters = { label: [`${markLabel}=image`] }
  const list = await ask('list images', docker.listImages({ filters }))
  const removed: SweptObject[] = []
  const remove = async (name: string, why: string): Promise<void> => {
    if (o.dryRun || (await couldRemove(docker, name))) removed.push({ kind: 'image', id: name, why })
  }
  for (const { Id, RepoTags, Created } of list) {
    // A build has its image before its name; that takes no time worth mentioning.
    if (Created * 1000 > o.now - unnamedMs) continue
    if ((RepoTags ?? []).every((tag) => tag === '<none>:<none>')) await remove(Id, 'a newer build has its name')
  }
  const isNear = await seesOurFiles(
    docker,
    list.map(({ Id }) => Id),
  )
  if (isNear !== true) return removed
  const uses = imageUses()
  const oldestFirst = list
    .flatMap(({ RepoTags, Created }) => (RepoTags ?? []).map((tag) => ({ tag, at: uses.get(tag) ?? Created * 1000 })))
    .filter(({ tag }) => tag.startsWith('paddock-task-'))
    .toSorted((a, b) => a.at - b.at)
  for (const { tag, at } of oldestFirst) {
    const use = await o.diskUse()
    if (use === null || use <= o.watermark) break
    const last = new Date(at).toISOString()
    await remove(tag, `the disk is ${Math.round(use * 100)} % full; last used ${last}`)
  }
  return removed
}

/** Part of the daemon's disk that is full, as `df` counts it. */
export async function daemonDiskUse(docker: Docker): Promise<number | null> {
  const root = await rootHere(docker)
  if (root === null) return null
  try {
    const { blocks, bfree, bavail } = await statfs(root)
    const used = blocks - bfree
    return used / (used + bavail)
  } catch {
    return null
  }
}

/** False for an image that is in use. Without force, so that a race with somebody who starts a box is lost by us. */
async function couldRemove(docker: Docker, name: string): Promise<boolean> {
  try {
    await docker.getImage(name).remove()
    return true
  } catch (error) {
    if (statusOf(error) === 409 || statusOf(error) === 404) return false
    throw error
  }
}
