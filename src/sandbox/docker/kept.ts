import type Docker from 'dockerode'
import { PaddockError } from '../../core/index.ts'
import type { KeepBounds, KeptImage } from '../contract/index.ts'
import { ask, statusOf } from './daemon.ts'
import { bytesLabel, callLabel, keptAtLabel, markLabel, rolloutLabel, runLabel } from './labels.ts'

/** Of each run one after the other: what is being kept counts for the next. */
const turns = new Map<string, Promise<void>>()

/** Whether one more may be kept for a run. Nobody else is told so until the answer is disposed. */
export async function roomToKeep(
  docker: Docker,
  { run, sizeBytes, bounds }: { readonly run: string; readonly sizeBytes: number; readonly bounds: KeepBounds },
): Promise<{ readonly isThere: boolean } & AsyncDisposable> {
  const before = turns.get(run)
  const { promise: over, resolve } = Promise.withResolvers<void>()
  turns.set(run, over)
  const end = async (): Promise<void> => {
    if (turns.get(run) === over) turns.delete(run)
    resolve()
  }
  try {
    await before
    const there = await keptImages(docker, { run })
    const bytes = there.reduce((sum, one) => sum + (one.sizeBytes ?? 0), 0)
    const isThere = there.length < bounds.most && bytes + sizeBytes <= bounds.mostBytes
    return { isThere, [Symbol.asyncDispose]: end }
  } catch (error) {
    await end()
    throw error
  }
}

/** Everything that is kept in this daemon until somebody removes it, oldest first. */
export async function keptImages(
  docker: Docker,
  filter: { readonly run?: string } = {},
): Promise<readonly KeptImage[]> {
  const label = [`${markLabel}=kept`, ...(filter.run === undefined ? [] : [`${runLabel}=${filter.run}`])]
  const list = await ask('list images', docker.listImages({ filters: { label } }))
  return list
    .flatMap(({ RepoTags, Labels, Created }) => {
      const labels = Labels ?? {}
      return (RepoTags ?? [])
        .filter((tag) => !tag.startsWith('<none>'))
        .map((tag) => ({
          image: tag,
          run: labels[runLabel] || null,
          rollout: labels[rolloutLabel] || null,
          call: labels[callLabel] || null,
          sizeBytes: (labels[bytesLabel] ?? '') === '' ? null : Number(labels[bytesLabel]),
          createdAt: Number(labels[keptAtLabel] ?? Created * 1000),
        }))
    })
    .toSorted((a, b) => a.createdAt - b.createdAt)
}

/** Removes one that is kept. Throws `NOT_FOUND`, and `IMAGE_IN_USE` where a box runs on it. */
export async function removeKept(docker: Docker, { image }: Pick<KeptImage, 'image'>): Promise<void> {
  const users = await ask('list containers', docker.listContainers({ all: true, filters: { ancestor: [image] } }))
  if (users.length > 0) {
    throw new PaddockError('IMAGE_IN_USE', `${image} is what ${users.length} boxes stand on.`)
  }
  try {
    await docker.getImage(image).remove()
  } catch (error) {
    if (statusOf(error) === 404)
      throw new PaddockError('NOT_FOUND', `Nothing is kept as ${image}.`, {
        cause: error,
        fix: '`paddock box kept` lists what is.',
      })
    if (statusOf(error) !== 409) throw error
    throw new PaddockError('IMAGE_IN_USE', `${image} is what a box stands on.`, { cause: error })
  }
}
