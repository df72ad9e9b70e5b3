import { posix } from 'node:path'
import { PaddockError } from '../../core/index.ts'
import { type ArchiveEntry, type ArchiveLimits, readForeignArchive } from '../../sandbox/index.ts'
import type { ArtifactItem } from '../contract.ts'

/**
 * Sorts the files of an archive to the places that a task takes work from. Names in it are those in a box without the first
 * slash, as `tar -C / -c app` writes them. What belongs to no place is refused by its name, and so are links out of theirs:
 * `WORK_REFUSED`, as {@link readForeignArchive} throws it. Nothing is written.
 */
export async function broughtItems(
  archive: Uint8Array,
  places: readonly string[],
  limits: ArchiveLimits = {},
): Promise<readonly ArtifactItem[]> {
  const entries = await readForeignArchive(archive, limits)
  const inside = places.map((place) => ({ place, name: place.slice(1), found: [] as ArchiveEntry[] }))
  for (const entry of entries) {
    const around = inside.filter(({ name }) => below(entry.path, name))
    if (around.length === 0 && !leadsTo(entry, places)) throw outsider(entry, places)
    for (const { name, found } of around) {
      if (entry.type === 'symlink' && leaves(entry, name)) throw linkOut(entry)
      found.push({ ...entry, path: entry.path === name ? '.' : entry.path.slice(name.length + 1) })
    }
  }
  return inside.flatMap(({ place, found }) => (found.length === 0 ? [] : [itemOf(place, found)]))
}

/** A directory is archived with itself as the entry `.` and all directories above its files; a file stands under its own name. */
function itemOf(place: string, found: readonly ArchiveEntry[]): ArtifactItem {
  const [only] = found
  if (only?.path === '.' && only.type === 'file') return item(place, [{ ...only, path: posix.basename(place) }])
  const known = new Set(found.map(({ path }) => path))
  const above = new Set(['.', ...found.flatMap(({ path }) => directoriesAbove(path))])
  const made = [...above].filter((path) => !known.has(path))
  return item(place, [...made.map((path) => ({ type: 'directory' as const, path, mode: 0o755 })), ...found])
}

function item(path: string, entries: readonly ArchiveEntry[]): ArtifactItem {
  const totalBytes = entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.data.length : 0), 0)
  return { path, content: { found: true, entries, refused: [], cutShort: false, totalBytes } }
}

function directoriesAbove(path: string): readonly string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
}

function below(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}/`)
}

/** A directory on the way to a place: archives have those beside what was asked for. */
function leadsTo({ type, path }: ArchiveEntry, places: readonly string[]): boolean {
  return type === 'directory' && (path === '.' || places.some((place) => below(place.slice(1), path)))
}

function leaves({ path, target }: ArchiveEntry & { readonly type: 'symlink' }, name: string): boolean {
  return path === name || !below(posix.join(posix.dirname(path), target), name)
}

function outsider({ path }: ArchiveEntry, places: readonly string[]): PaddockError {
  const taken = places.length === 0 ? 'no files' : `files of ${places.slice(0, 10).join(', ')}`
  return new PaddockError(
    'WORK_REFUSED',
    `The archive's entry ${JSON.stringify(path)} is refused: the task takes ${taken}.`,
    {
      data: { entry: path.slice(0, 200), reason: 'no_place' },
      fix: 'Name files as they are in a box, without the first slash, and leave others out.',
    },
  )
}

function linkOut({ path }: ArchiveEntry): PaddockError {
  return new PaddockError(
    'WORK_REFUSED',
    `The archive's entry ${JSON.stringify(path)} is refused: it is a link out of its directory.`,
    {
      data: { entry: path.slice(0, 200), reason: 'link_out' },
    },
  )
}
