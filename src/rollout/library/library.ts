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
  /** When each file was last read, by path; null: the box does not tell. */
  readonly readAt: ReadonlyMap<string, string> | null
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
  return { given, from, files, readAt: await readTimes(box, signal, { proven: true }) }
}

/** Which of the files that were given have been read in the box since. Asked while it runs, before anybody else reads them; null: it does not tell. */
export async function usedOf(
  box: Box,
  { readAt, files }: PutLibrary,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  const now = readAt === null ? null : await readTimes(box, signal, { proven: false })
  if (now === null || readAt === null) return null
  const isUsed = ({ path }: File): boolean => now.has(path) && now.get(path) !== readAt.get(path)
  return files.filter(isUsed).map(({ path }) => path)
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
 * Times of the last reading, as the box's own file system has them. `proven`: only where one changes when a file is read, which a file system mounted
 * `noatime` does not do. Null: the box does not tell, or has no find.
 */
async function readTimes(
  box: Box,
  signal: AbortSignal,
  { proven }: { readonly proven: boolean },
): Promise<ReadonlyMap<string, string> | null> {
  const proof = `touch -d @1 .probe && a=$(stat -c %x .probe) && echo x >> .probe && cat .probe > /dev/null && b=$(stat -c %x .probe)
rm -f .probe; [ "$a" != "$b" ] || exit 9`
  const list = String.raw`find . -type f -printf '%A@ %P\0'`
  const command = ['/bin/sh', '-c', proven ? `${proof}\n${list}` : list]
  const ran = await box.exec({ command, cwd: libraryPlace, timeoutMs: 20_000 }, { signal }).catch((error: unknown) => {
    if (isPaddockError(error) && error.family === 'agent') return null
    throw error
  })
  if (ran === null) return null
  if (ran.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${ran.why.detail}`)
  if (ran.kind !== 'exited' || ran.code !== 0) return null
  const lines = new TextDecoder()
    .decode(ran.stdout)
    .split('\0')
    .filter((line) => line !== '')
  return new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))]))
}
