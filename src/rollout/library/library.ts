import { type Digest, type EventBody, type Id, isPaddockError, PaddockError, sha256 } from '../../core/index.ts'
import { packArtifact, unpackArtifact } from '../../envs/index.ts'
import type { ArchiveEntry, Box, PutFile } from '../../sandbox/index.ts'
import type { Blobs } from '../../trajectory/index.ts'

/** Where a library stands in the boxes of agents. */
export const libraryPlace = '/library'
/** More is no library. */
const limits = { maxBytes: 4 * 1024 * 1024, maxEntries: 500 }

type File = Extract<ArchiveEntry, { type: 'file' }>
export type LibraryEvent = Extract<EventBody, { kind: 'library' }>

/** A library as it was put into a box. */
export interface PutLibrary {
  readonly given: Digest | null
  readonly from: Id | null
  readonly files: readonly File[]
  /** Each file as the box's file system has it, by path; null: the box does not tell. */
  readonly sights: ReadonlyMap<string, Sight> | null
}

/** A file by its inode, which stays when it is renamed, and when it was last read. */
interface Sight {
  readonly inode: string
  readonly readAt: string
}

/**
 * Puts a library into the box of an agent, or an empty folder where there is none yet. What the agent may do with it is its own: the folder is its
 * user's. Throws `NOT_FOUND` where the artifact is gone, and what the box throws.
 */
export async function putLibrary(
  box: Box,
  blobs: Pick<Blobs, 'get'>,
  { sha256: given, from }: { readonly sha256: Digest | null; readonly from: Id | null },
  signal: AbortSignal,
): Promise<PutLibrary> {
  const files = given === null ? [] : await filesOf(blobs, given)
  await box.putFiles(libraryPlace, files.map(putFileOf))
  return { given, from, files, sights: await provenSights(box, signal) }
}

/**
 * Which of the files that were given have been read in the box since. Asked while it runs, before anybody else reads them. Null: it does not
 * tell, also because a file was removed, replaced, or moved where it cannot be found.
 */
export async function usedOf(
  box: Box,
  { sights, files }: PutLibrary,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  if (sights === null) return null
  const inodes = new Set(Array.from(sights.values(), ({ inode }) => inode))
  const now = new Map<string, string>()
  const see = (seen: ReadonlyMap<string, Sight> | null): void => {
    for (const { inode, readAt } of seen?.values() ?? []) now.set(inode, readAt)
  }
  see(await sightsOf(box, signal, { cwd: libraryPlace }))
  const moved = [...inodes].filter((inode) => !now.has(inode))
  if (moved.length > 0) see(await sightsOf(box, signal, { cwd: '/', inodes: moved }))
  if ([...inodes].some((inode) => !now.has(inode))) return null
  const isUsed = (sight: Sight | undefined): boolean => sight !== undefined && now.get(sight.inode) !== sight.readAt
  return files.filter(({ path }) => isUsed(sights.get(path))).map(({ path }) => path)
}

/**
 * Takes the library out of a box that stands still and keeps it. Links and devices are left out by name; of one that is too large, or has
 * a file that is, nothing is kept, and the one that was given goes on.
 */
export async function takeLibrary(
  box: Box,
  blobs: Pick<Blobs, 'put'>,
  { given, from, files: before }: PutLibrary,
  used: readonly string[] | null,
): Promise<LibraryEvent> {
  const content = await box.getFiles(libraryPlace, limits)
  const files = content.entries.filter((entry): entry is File => entry.type === 'file')
  const links = content.entries.filter(({ type }) => type === 'symlink')
  const refused = [
    ...content.refused.map(({ path, reason }) => ({ path, reason: String(reason) })),
    ...links.map(({ path }) => ({ path, reason: 'link' })),
  ].slice(0, 50)
  const wrote = files.filter((file) => !before.some((one) => isSame(one, file))).map(({ path }) => path)
  const isTooLarge =
    content.cutShort || content.refused.some(({ reason }) => reason === 'too_large' || reason === 'too_many')
  if (isTooLarge || !content.found)
    return { kind: 'library', given, from, left: given, files: before.length, used, wrote: [], refused }
  const plain = files.map((file) => ({ ...file, mode: (file.mode & 0o100) === 0 ? 0o644 : 0o755 }))
  const packed = await packArtifact({ path: libraryPlace, content: { ...content, entries: plain, refused: [] } })
  await blobs.put(packed.data)
  return { kind: 'library', given, from, left: packed.sha256, files: plain.length, used, wrote, refused }
}

async function filesOf(blobs: Pick<Blobs, 'get'>, digest: Digest): Promise<readonly File[]> {
  const { content } = await unpackArtifact({ path: libraryPlace, data: await blobs.get(digest) })
  return content.entries.filter((entry): entry is File => entry.type === 'file')
}

function putFileOf({ path, data, mode }: File): PutFile {
  return { path, data, mode }
}

function isSame(a: File, b: File): boolean {
  return a.path === b.path && sha256(a.data) === sha256(b.data)
}

/**
 * The files of the library, if the box's file system tells what is read and what is copied: `noatime` keeps no times, and a copy that
 * the kernel or the disk makes changes none.
 */
async function provenSights(box: Box, signal: AbortSignal): Promise<ReadonlyMap<string, Sight> | null> {
  const tells = (read: string) => `touch -a -d @1 .probe && ${read} && [ "$(stat -c %X .probe)" != 1 ] || exit 9`
  const ways = ['cat .probe > /dev/null', 'cat .probe > .copy', 'cp .probe .copy'].map(tells)
  const proof = `trap 'rm -f .probe .copy' EXIT; echo x > .probe || exit 9\n${ways.join('\n')}`
  return sightsOf(box, signal, { cwd: libraryPlace, before: `(${proof}) || exit 9` })
}

/** Null: the box does not tell, or has no find. `inodes`: of these alone, wherever they are. */
async function sightsOf(
  box: Box,
  signal: AbortSignal,
  o: { readonly cwd: string; readonly before?: string; readonly inodes?: readonly string[] },
): Promise<ReadonlyMap<string, Sight> | null> {
  const which = o.inodes === undefined ? '' : `\\( ${o.inodes.map((inode) => `-inum ${inode}`).join(' -o ')} \\)`
  const list = String.raw`find . -xdev -type f ${which} -printf '%i %A@ %P\0'`
  // Some places are not for everybody to look into.
  const lines = o.inodes === undefined ? [o.before ?? '', list] : [`${list} 2> /dev/null`, 'true']
  const command = ['/bin/sh', '-c', lines.join('\n')]
  const ran = await box.exec({ command, cwd: o.cwd, timeoutMs: 20_000 }, { signal }).catch((error: unknown) => {
    if (isPaddockError(error) && error.family === 'agent') return null
    throw error
  })
  if (ran === null) return null
  if (ran.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${ran.why.detail}`)
  if (ran.kind !== 'exited' || ran.code !== 0) return null
  const seen = new TextDecoder().decode(ran.stdout).matchAll(/(\d+) (\S+) ([^\0]*)\0/g)
  return new Map(Array.from(seen, ([, inode = '', readAt = '', path = '']) => [path, { inode, readAt }]))
}
