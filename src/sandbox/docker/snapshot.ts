import type Docker from 'dockerode'
import { randomBytes } from 'node:crypto'
import { PaddockError, sha256 } from '../../core/index.ts'
import type { ImageRef, Snapshot } from '../contract/index.ts'
import { ask, statusOf } from './daemon.ts'
import { depthLabel, markLabel, ownerLabel, parentLabel } from './labels.ts'
import { thisOwner } from './owner.ts'

/** An image has at most 127 layers (overlay2), and what snapshots lie on has layers of its own. */
const deepest = 96

/** Commits a container whose mounts, beside `mounts`, hold nothing that would be lost. */
export async function commitSnapshot(
  docker: Docker,
  container: Docker.Container,
  o: { readonly parent: string; readonly mounts: readonly string[] },
): Promise<Snapshot> {
  const facts = await ask('look at a box', container.inspect(), 'BOX_DEAD')
  const lost = facts.Mounts.find((mount) => !o.mounts.includes(mount.Destination))
  if (lost !== undefined) {
    throw new PaddockError('SANDBOX_CAPABILITY', `A snapshot would lose ${lost.Destination}, which is a volume.`, {
      fix: 'Leave VOLUME out of the image.',
    })
  }
  const depth = (await depthOf(docker, facts.Image)) + 1
  if (depth > deepest) {
    throw new PaddockError('SANDBOX_CAPABILITY', `${deepest} snapshots lie on each other already.`, {
      fix: 'Fork from an earlier one.',
    })
  }
  const version = randomBytes(6).toString('hex')
  const tag = `paddock-snapshot:${version}`
  const labels = {
    [markLabel]: 'snapshot',
    [ownerLabel]: thisOwner(),
    [depthLabel]: String(depth),
    [parentLabel]: o.parent,
  }
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const commit = { repo: 'paddock-snapshot', tag: version, pause: true, changes: `LABEL ${pairs.join(' ')}` }
  await ask('commit a box', container.commit(commit), 'BOX_DEAD')
  const { Id: id } = await ask('look at a snapshot', docker.getImage(tag).inspect())
  const image: ImageRef = { tag, id, recipeDigest: sha256(id), fresh: true }
  return { image, parent: o.parent, depth, [Symbol.asyncDispose]: () => removeImage(docker, tag) }
}

/** Removes all snapshots of this process, those that others lie on last. */
export async function removeOwnSnapshots(docker: Docker): Promise<void> {
  const filters = { label: [`${markLabel}=snapshot`, `${ownerLabel}=${thisOwner()}`] }
  const list = await docker.listImages({ all: true, filters })
  for (const { Id } of list.toSorted(deepestFirst)) await removeImage(docker, Id)
}

/** Orders images so that none comes before one that lies on it. */
export function deepestFirst(a: { readonly Labels: unknown }, b: { readonly Labels: unknown }): number {
  return depthIn(b.Labels) - depthIn(a.Labels)
}

/** Removes an image; one that others lie on loses its name only and goes with the last of them. */
export async function removeImage(docker: Docker, name: string): Promise<void> {
  try {
    await docker.getImage(name).remove({ force: true })
  } catch (error) {
    if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error
  }
}

async function depthOf(docker: Docker, image: string): Promise<number> {
  const facts = await ask('look at an image', docker.getImage(image).inspect())
  return depthIn(facts.Config.Labels)
}

function depthIn(labels: unknown): number {
  if (typeof labels !== 'object' || labels === null || !(depthLabel in labels)) return 0
  return Number(labels[depthLabel])
}
