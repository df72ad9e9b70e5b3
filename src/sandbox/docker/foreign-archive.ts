import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { ArchiveEntry, ArchiveLimits, RefusedReason } from '../contract/index.ts'
import { defaultArchiveLimits, EntryJudge } from './archive-out.ts'

/** Names and headers beside the files themselves. */
const headerBytes = 2048
/** As file systems have it. */
const longestName = 255
const longestPath = 4000

const words: Readonly<Record<RefusedReason, string>> = {
  absolute_path: 'its name is absolute',
  parent_path: 'its name goes up with ..',
  link_out: 'it is a link out of its directory',
  hard_link: 'it is a hard link',
  device: 'it is a device, a fifo or another special file',
  through_link: 'it would be written through a link',
  duplicate: 'its name is there twice, or as a file and as a directory',
  too_large: 'the files are too large together',
  too_many: 'there are too many entries',
  unreadable: 'it cannot be read',
}

/**
 * The entries of a tar, perhaps with gzip, that a stranger made; nothing of it is written anywhere. Where
 * {@link EntryJudge} would leave something out the whole is refused by the name of its first bad entry: `WORK_REFUSED`.
 */
export async function readForeignArchive(
  bytes: Uint8Array,
  limits: ArchiveLimits = {},
): Promise<readonly ArchiveEntry[]> {
  const bounds = { ...defaultArchiveLimits, ...limits }
  const tar = await unzipped(bytes, bounds.maxBytes + bounds.maxEntries * headerBytes)
  const reader = new ForeignReader(bounds)
  const unpack = extract()
  unpack.end(tar)
  try {
    for await (const entry of unpack) {
      const { name, type, linkname, mode, size } = entry.header
      const header = { name, type: type ?? 'unknown', size, mode, linkname: linkname ?? '' }
      const path = reader.take(header)
      if (header.type === 'directory') reader.entries.push({ type: 'directory', path, mode: mode & 0o777 })
      else if (header.type === 'symlink') reader.entries.push({ type: 'symlink', path, target: header.linkname })
      else reader.entries.push({ type: 'file', path, mode: mode & 0o777, data: await buffer(entry) })
      entry.resume()
    }
  } catch (cause) {
    if (isPaddockError(cause)) throw cause
    throw refusedWork(null, 'unreadable', 'it is no whole tar archive', cause)
  } finally {
    unpack.destroy()
  }
  if (reader.entries.length === 0) throw refusedWork(null, 'unreadable', 'it holds no entries')
  return reader.entries
}

/** Beside what {@link EntryJudge} sees in one entry, what entries are together. */
class ForeignReader {
  readonly entries: ArchiveEntry[] = []
  readonly #judge: EntryJudge
  readonly #files = new Set<string>()
  readonly #directories = new Set<string>()

  constructor(limits: Required<ArchiveLimits>) {
    this.#judge = new EntryJudge(limits)
  }

  /** The clean path of an entry. */
  take(header: Parameters<EntryJudge['judge']>[0]): string {
    const judged = this.#judge.judge(header)
    if ('refused' in judged) throw refusedWork(header.name, judged.refused)
    const { path } = judged
    if (Buffer.byteLength(path) > longestPath || path.split('/').some((part) => Buffer.byteLength(part) > longestName))
      throw refusedWork(path, 'unreadable', 'its name is too long')
    const isDirectory = header.type === 'directory'
    if (path === '.' && !isDirectory) throw refusedWork(header.name, 'unreadable', 'it has no name')
    const above = parentsOf(path)
    if (above.some((one) => this.#files.has(one)) || (!isDirectory && this.#directories.has(path)))
      throw refusedWork(path, 'duplicate')
    for (const one of above) this.#directories.add(one)
    if (!isDirectory) this.#files.add(path)
    return path
  }
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
}

async function unzipped(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) {
    if (bytes.length > maxBytes) throw refusedWork(null, 'too_large')
    return bytes
  }
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: maxBytes })
  } catch (cause) {
    const tooLarge = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    if (tooLarge) throw refusedWork(null, 'too_large', words.too_large, cause)
    throw refusedWork(null, 'unreadable', 'its gzip is damaged', cause)
  }
}

/** An archive that is refused for one of its entries, or (`name` null) as a whole. */
function refusedWork(name: string | null, reason: RefusedReason, why = words[reason], cause?: unknown): PaddockError {
  const what = name === null ? 'The archive' : `The archive's entry ${JSON.stringify(name.slice(0, 200))}`
  return new PaddockError('WORK_REFUSED', `${what} is refused: ${why}.`, {
    data: { entry: name?.slice(0, 200) ?? null, reason },
    ...(cause === undefined ? {} : { cause }),
  })
}
