import type Docker from 'dockerode'
import { isOwnerAlive } from '../../core/index.ts'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { SweepReport, SweptObject } from '../contract/index.ts'
import { removeByForce } from './attached.ts'
import { bundleVolume } from './bundle.ts'
import { ask, messageOf, statusOf } from './daemon.ts'
import { daemonDiskUse, evictImages } from './evict.ts'
import { removeOwned, runtimeDirectory, workDirectory } from './host-dirs.ts'
import { ownerLabel } from './labels.ts'
import { programsVersion } from './programs.ts'
import { deepestFirst, removeImage } from './snapshot.ts'

interface Candidate extends SweptObject {
  readonly owner: string
  remove(): Promise<void>
}

/**
 * Removes what dead owners left: containers, then volumes and networks, then directories of sockets and builds. Boxes die
 * by themselves with their owner; this finds those that could not (frozen, half made) and what is no process.
 */
export async function sweepLeftovers(
  docker: Docker,
  dryRun: boolean,
  watermark: number,
): Promise<Omit<SweepReport, 'buildCacheBytes'>> {
  const removed: SweptObject[] = []
  const kept: SweptObject[] = []
  const failed: (SweptObject & { error: string })[] = []
  for (const candidate of await everything(docker)) {
    const { kind, id, owner } = candidate
    if (kind === 'image' && owner === '') {
      kept.push({ kind, id, why: 'it is kept until `paddock box drop` removes it' })
      continue
    }
    if (isOwnerAlive(owner)) {
      kept.push({ kind, id, why: `its owner (process ${pidOf(owner)}) is alive` })
      continue
    }
    const swept: SweptObject = { kind, id, why: `its owner (process ${pidOf(owner)}) is dead${candidate.why}` }
    try {
      if (!dryRun) await candidate.remove()
      removed.push(swept)
    } catch (error) {
      failed.push({ ...swept, error: messageOf(error) })
    }
  }
  removed.push(...(await oldPrograms(docker, dryRun)))
  removed.push(
    ...(await evictImages(docker, { watermark, dryRun, now: Date.now(), diskUse: () => daemonDiskUse(docker) })),
  )
  return { removed, kept, failed }
}

/** `BuildCache` of `GET /system/df` (Docker Engine API 1.41); a piece that images share is theirs. */
const cacheShape = z.looseObject({
  BuildCache: z.array(z.looseObject({ Size: z.number(), Shared: z.boolean() })).nullish(),
})

/** What BuildKit has cached; null where the daemon does not say. */
export async function buildCacheBytes(docker: Docker): Promise<number | null> {
  const told = cacheShape.safeParse(await docker.df().catch(() => null))
  if (!told.success) return null
  return (told.data.BuildCache ?? []).reduce((sum, { Size, Shared }) => sum + (Shared ? 0 : Size), 0)
}

/** Removes what one owner left, once it is dead. */
export async function sweepOwner(docker: Docker, owner: string): Promise<void> {
  if (isOwnerAlive(owner)) return
  for (const candidate of await everything(docker)) {
    if (candidate.owner === owner) await candidate.remove().catch(() => undefined)
  }
}

/** In the order in which it can be removed. */
async function everything(docker: Docker): Promise<readonly Candidate[]> {
  const candidates: Candidate[] = []
  for (const list of [containers, volumes, networks, images]) candidates.push(...(await list(docker)))
  return [...candidates, ...directories()]
}

const filters = { label: [ownerLabel] }

async function containers(docker: Docker): Promise<Candidate[]> {
  const list = await ask('list containers', docker.listContainers({ all: true, filters }))
  return list.map((info) => ({
    kind: 'container',
    id: info.Id,
    why: `; ${info.Labels['paddock'] ?? ''} container, ${info.State}`,
    owner: info.Labels[ownerLabel] ?? '',
    remove: async () => {
      const container = docker.getContainer(info.Id)
      if (info.State === 'paused') await container.unpause().catch(() => undefined)
      await removeByForce(container)
    },
  }))
}

async function volumes(docker: Docker): Promise<Candidate[]> {
  const { Volumes } = await ask('list volumes', docker.listVolumes({ filters: JSON.stringify(filters) }))
  return (Volumes ?? []).map((info) => ({
    kind: 'volume',
    id: info.Name,
    why: '',
    owner: info.Labels?.[ownerLabel] ?? '',
    remove: () => gone(docker.getVolume(info.Name).remove()),
  }))
}

async function networks(docker: Docker): Promise<Candidate[]> {
  const list = await ask('list networks', docker.listNetworks({ filters }))
  return list.map((info) => ({
    kind: 'network',
    id: info.Id,
    why: '',
    owner: info.Labels?.[ownerLabel] ?? '',
    remove: () => gone(docker.getNetwork(info.Id).remove()),
  }))
}

/** In-box programs of earlier versions: a small compilation away for whoever still runs one. */
async function oldPrograms(docker: Docker, dryRun: boolean): Promise<SweptObject[]> {
  const current = bundleVolume(programsVersion())
  const { Volumes } = await ask(
    'list volumes',
    docker.listVolumes({ filters: JSON.stringify({ name: ['paddock-programs-'] }) }),
  )
  const removed: SweptObject[] = []
  for (const { Name } of Volumes ?? []) {
    if (!Name.startsWith('paddock-programs-') || Name === current) continue
    // Without force: a volume that a container uses stays.
    const isGone =
      dryRun ||
      (await docker
        .getVolume(Name)
        .remove()
        .then(
          () => true,
          () => false,
        ))
    if (isGone) removed.push({ kind: 'volume', id: Name, why: 'in-box programs of another version, not in use' })
  }
  return removed
}

/** Snapshots; what was built is kept for all owners. */
async function images(docker: Docker): Promise<Candidate[]> {
  const list = await ask('list images', docker.listImages({ all: true, filters }))
  return list.toSorted(deepestFirst).map((info) => ({
    kind: 'image',
    id: info.RepoTags?.[0] ?? info.Id,
    why: '',
    owner: info.Labels?.[ownerLabel] ?? '',
    remove: () => removeImage(docker, info.Id),
  }))
}

function directories(): Candidate[] {
  return [runtimeDirectory(), workDirectory()].flatMap((parent) =>
    (existsSync(parent) ? readdirSync(parent) : [])
      .filter((name) => name.endsWith('.owner'))
      .map((name) => {
        const path = join(parent, name.slice(0, -'.owner'.length))
        return {
          kind: 'directory' as const,
          id: path,
          why: '',
          owner: readOwner(join(parent, name)),
          remove: async () => removeOwned(path),
        }
      }),
  )
}

function readOwner(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

async function gone(removal: Promise<unknown>): Promise<void> {
  try {
    await removal
  } catch (error) {
    if (statusOf(error) !== 404) throw error
  }
}

function pidOf(owner: string): string {
  return owner.split(':')[0] ?? '?'
}
