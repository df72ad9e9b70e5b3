import type Docker from 'dockerode'
import { randomBytes } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { PaddockError, sha256, thisOwner } from '../../core/index.ts'
import type { BoxLabels, ImageRef, ImageSays, Snapshot, SnapshotOptions } from '../contract/index.ts'
import { removeByForce } from './attached.ts'
import { ask, statusOf } from './daemon.ts'
import { askOfFiles } from './files-fault.ts'
import { saysOf, saysText } from './image-says.ts'
import { roomToKeep } from './kept.ts'
import {
  bytesLabel,
  callLabel,
  depthLabel,
  keptAtLabel,
  markLabel,
  ownerLabel,
  parentLabel,
  providerLabel,
  rolloutLabel,
  runLabel,
  saysLabel,
} from './labels.ts'
import { rootHere } from './near.ts'
import type { UpperDirectories } from './touched.ts'

/** An image has at most 127 layers (overlay2), and what snapshots lie on has layers of its own. */
const deepest = 96

/** What a copy leaves free on the daemon's disk. */
const reservedBytes = 2 ** 30

/** What copies that are being made will take of each daemon's disk. */
const growing = new WeakMap<Docker, number>()

/**
 * Commits a container whose mounts, beside `mounts`, hold nothing that would be lost. The daemon writes holes out, so that
 * the size that counts is the one that files say they have.
 */
export async function commitSnapshot(
  docker: Docker,
  container: Docker.Container,
  o: {
    readonly parent: string
    readonly mounts: readonly string[]
    readonly mostBytes: number
    readonly upper: UpperDirectories
    readonly about: BoxLabels
    readonly asked: SnapshotOptions
    readonly provider: string
  },
): Promise<Snapshot> {
  const facts = await ask('look at a box', container.inspect(), 'BOX_DEAD')
  const lost = facts.Mounts.find((mount) => !o.mounts.includes(mount.Destination))
  if (lost !== undefined) {
    throw new PaddockError('SANDBOX_CAPABILITY', `A snapshot would lose ${lost.Destination}, which is a volume.`, {
      fix: 'Leave VOLUME out of the image.',
    })
  }
  const below = await ask('look at an image', docker.getImage(facts.Image).inspect())
  const depth = depthIn(below.Config.Labels) + 1
  if (depth > deepest) {
    throw new PaddockError('SANDBOX_CAPABILITY', `${deepest} snapshots lie on each other already.`, {
      fix: 'Fork from an earlier one.',
    })
  }
  // Throws for too many of them.
  await o.upper.paths(container)
  const sizeBytes = await writtenBytes(docker, container)
  if (sizeBytes > o.mostBytes) {
    const [size, most] = [sizeBytes, o.mostBytes].map((bytes) => `${Math.ceil(bytes / 2 ** 20)} MB`)
    throw new PaddockError('BOX_FILES_UNFIT', `The files of the box say that they are ${size}; it may have ${most}.`)
  }
  const before = growing.get(docker) ?? 0
  growing.set(docker, before + sizeBytes)
  try {
    await requireRoom(docker, container, sizeBytes, o.upper)
    const made = { parent: o.parent, depth, says: saysOf(below), provider: o.provider }
    const { about, asked } = o
    const { run } = about
    if (asked.keep === undefined || run === undefined) return await commit(docker, container, made)
    await using room = await roomToKeep(docker, { run, sizeBytes, bounds: asked.keep })
    return await commit(
      docker,
      container,
      room.isThere ? { ...made, kept: { about, sizeBytes, callId: asked.callId ?? '' } } : made,
    )
  } finally {
    growing.set(docker, (growing.get(docker) ?? sizeBytes) - sizeBytes)
  }
}

/** `SizeRw` of `GET /containers/json?size=true`: what files say, and not what they take. */
async function writtenBytes(docker: Docker, container: Docker.Container): Promise<number> {
  const list = docker.listContainers({ all: true, size: true, filters: { id: [container.id] } })
  const [facts] = await ask('measure a box', list, 'BOX_DEAD')
  return facts !== undefined && 'SizeRw' in facts && typeof facts.SizeRw === 'number' ? facts.SizeRw : 0
}

/** Where the disk cannot be asked, there is room. What is mostly holes is whose files they are, not a lack of ours. */
async function requireRoom(
  docker: Docker,
  container: Docker.Container,
  sizeBytes: number,
  upper: UpperDirectories,
): Promise<void> {
  const root = await rootHere(docker)
  const disk = root === null ? null : await statfs(root).catch(() => null)
  if (disk === null || disk.bavail * disk.bsize >= (growing.get(docker) ?? 0) + reservedBytes) return
  const onDisk = await upper.bytesOnDisk(container)
  if (onDisk !== null && onDisk < sizeBytes / 2) {
    throw new PaddockError(
      'BOX_FILES_UNFIT',
      'The files of the box are mostly holes, and there is no room to fill them.',
    )
  }
  throw new PaddockError('SANDBOX_DISK_FULL', `No room for a copy of ${Math.ceil(sizeBytes / 2 ** 20)} MB.`)
}

async function commit(
  docker: Docker,
  container: Docker.Container,
  o: {
    readonly parent: string
    readonly depth: number
    readonly says: ImageSays
    readonly provider: string
    /** Absent: it goes with this process. */
    readonly kept?: { readonly about: BoxLabels; readonly sizeBytes: number; readonly callId: string }
  },
): Promise<Snapshot> {
  const version = randomBytes(6).toString('hex')
  const { kept } = o
  const repo = kept === undefined ? 'paddock-snapshot' : 'paddock-kept'
  const tag = `${repo}:${version}`
  const labels = {
    [markLabel]: kept === undefined ? 'snapshot' : 'kept',
    [ownerLabel]: kept === undefined ? thisOwner() : '',
    [providerLabel]: kept === undefined ? o.provider : '',
    // The box's own image may be one that is kept, and its labels are not ours.
    [keptAtLabel]: String(Date.now()),
    [runLabel]: kept?.about.run ?? '',
    [rolloutLabel]: kept?.about.rollout ?? '',
    [callLabel]: kept?.callId ?? '',
    [bytesLabel]: String(kept?.sizeBytes ?? 0),
    [depthLabel]: String(o.depth),
    [parentLabel]: o.parent,
    [saysLabel]: saysText(o.says),
  }
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const options = { repo, tag: version, pause: true, changes: `LABEL ${pairs.join(' ')}` }
  await askOfFiles('commit a box', { docker, container, image: o.parent }, (of) => of.commit(options))
  const { Id: id } = await ask('look at a snapshot', docker.getImage(tag).inspect())
  const image: ImageRef = { tag, id, recipeDigest: sha256(id), fresh: true, says: o.says }
  const gone = async (): Promise<void> => (kept === undefined ? removeImage(docker, tag) : undefined)
  return { image, parent: o.parent, depth: o.depth, kept: kept !== undefined, [Symbol.asyncDispose]: gone }
}

/**
 * Removes all that a provider has left: containers that the daemon made while its answer was lost, then its snapshots, those
 * that others lie on last.
 */
export async function removeLeftOf(docker: Docker, provider: string): Promise<void> {
  const filters = { label: [`${providerLabel}=${provider}`] }
  for (const { Id } of await docker.listContainers({ all: true, filters })) await removeByForce(docker.getContainer(Id))
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

/** How many snapshots lie on each other in an image with these labels. */
function depthIn(labels: unknown): number {
  if (typeof labels !== 'object' || labels === null || !(depthLabel in labels)) return 0
  return Number(labels[depthLabel]) || 0
}
