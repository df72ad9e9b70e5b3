import type Docker from 'dockerode'
import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { extract, pack, type Header, type Pack } from 'tar-stream'
import { defaultArchiveLimits } from './archive-out.ts'
import { daemonFault, statusOf } from './daemon.ts'
import type { ArchiveLimits, BoxChange, BoxLayer } from '../contract/index.ts'

/** What the daemon lays over every container, and what has no content of its own. */
const notOfTheBox = ['/proc', '/sys', '/dev', '/etc/hosts', '/etc/hostname', '/etc/resolv.conf', '/.dockerenv']

/** Nothing else survives an unpacking by the daemon; a box cannot make devices. */
const kept = new Set(['file', 'contiguous-file', 'directory', 'symlink', 'link', 'fifo'])

/** What stands in a name for bytes that are no UTF-8. */
const noUtf8 = '\uFFFD'

/** Places that are taken by a request each. */
const mostPlaces = 2000

/**
 * Takes what `changes` lists out of a container that stands still, with owners, modes, times and links as they are. Null
 * where that is more than the limits or cannot all be asked for: a part of it would be another filesystem.
 */
export async function takeLayer(
  container: Docker.Container,
  changes: readonly BoxChange[],
  o: { readonly limits?: ArchiveLimits | undefined; readonly mounts: readonly string[] },
): Promise<BoxLayer | null> {
  const limits = { ...defaultArchiveLimits, ...o.limits }
  const places = placesOf(changes.filter(({ path }) => ![...notOfTheBox, ...o.mounts].some((at) => below(path, at))))
  if (places.taken.length > mostPlaces) return null
  const out = pack()
  const bytes = buffer(out)
  const count = { bytes: 0, entries: 0 }
  for (const { path, whole } of places.taken) {
    const tar = await archiveOf(container, path)
    if (tar === null || !(await copy(tar, out, { path, whole }, count, limits))) {
      out.destroy()
      await bytes.catch(() => undefined)
      return null
    }
  }
  out.finalize()
  return { tar: await bytes, deleted: places.deleted }
}

/** Null for a path that cannot be asked for: its name is no UTF-8, which the daemon's list does not say, or it is a link to itself. */
async function archiveOf(container: Docker.Container, path: string): Promise<Readable | null> {
  try {
    return (await container.getArchive({ path })) as Readable
  } catch (error) {
    if (statusOf(error) !== null) return null
    throw daemonFault(error, 'read files of a box', 'BOX_DEAD')
  }
}

/** A directory that was added comes whole; one that was there before comes without what is in it. */
function placesOf(changes: readonly BoxChange[]) {
  const added = new Set(changes.filter(({ kind }) => kind === 'added').map(({ path }) => path))
  const insideAdded = (path: string): boolean => added.has(posix.dirname(path))
  const sorted = changes.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  return {
    taken: sorted
      .filter(({ path, kind }) => kind === 'modified' || (kind === 'added' && !insideAdded(path)))
      .map(({ path, kind }) => ({ path, whole: kind === 'added' })),
    deleted: sorted.filter(({ kind }) => kind === 'deleted').map(({ path }) => path),
  }
}

/** False when the limits are passed, or a name is not text. */
async function copy(
  tar: Readable,
  out: Pack,
  place: { readonly path: string; readonly whole: boolean },
  count: { bytes: number; entries: number },
  limits: Required<ArchiveLimits>,
): Promise<boolean> {
  const unpack = extract()
  tar.on('error', (error) => unpack.destroy(error))
  tar.pipe(unpack)
  const above = posix.dirname(place.path).slice(1)
  try {
    for await (const entry of unpack) {
      const header: Header = { ...entry.header, name: posix.join(above, entry.header.name) }
      const type = header.type ?? 'file'
      if (type === 'link') header.linkname = posix.join(above, header.linkname ?? '')
      count.entries += 1
      count.bytes += header.size ?? 0
      if (count.entries > limits.maxEntries || count.bytes > limits.maxBytes) return false
      if (`${header.name}${header.linkname ?? ''}`.includes(noUtf8)) return false
      if (kept.has(type)) {
        const data = await buffer(entry)
        out.entry(header, data)
      } else entry.resume()
      if (!place.whole) break
    }
    return true
  } finally {
    tar.unpipe(unpack)
    tar.destroy()
    unpack.destroy()
  }
}

function below(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`)
}
