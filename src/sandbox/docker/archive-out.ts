import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import { extract, type Extract } from 'tar-stream'
import type { ArchiveEntry, ArchiveLimits, Artifact, RefusedEntry, RefusedReason } from '../contract/index.ts'

type Source = Extract extends AsyncIterable<infer Entry> ? Entry : never

/** What one entry of a tar says about itself. */
export interface TarHeader {
  readonly name: string
  readonly type: string
  readonly size: number
  readonly mode: number
  readonly linkname: string
}

/**
 * Decides about entries of a tar that an adversary may have written. A path is taken apart once and judged by its text;
 * nothing is ever written below a link, and no link may point out of the artifact.
 */
export class EntryJudge {
  readonly #links = new Set<string>()
  readonly #seen = new Set<string>()
  readonly #limits: Required<ArchiveLimits>
  #bytes = 0
  #entries = 0

  constructor(limits: Required<ArchiveLimits>) {
    this.#limits = limits
  }

  get totalBytes(): number {
    return this.#bytes
  }

  /** The entry's clean path, or why it is refused. */
  judge(header: TarHeader): { readonly path: string } | { readonly refused: RefusedReason } {
    const path = header.name.replace(/\/+$/, '')
    if (path.startsWith('/')) return { refused: 'absolute_path' }
    if (path.includes('\0') || path.split('/').includes('..')) return { refused: 'parent_path' }
    const clean = posix.normalize(path === '' ? '.' : path)
    if (parents(clean).some((parent) => this.#links.has(parent))) return { refused: 'through_link' }
    if (header.type === 'link') return { refused: 'hard_link' }
    if (!['file', 'contiguous-file', 'directory', 'symlink'].includes(header.type)) return { refused: 'device' }
    if (this.#seen.has(clean)) return { refused: 'duplicate' }
    if (header.type === 'symlink') {
      if (!staysInside(clean, header.linkname)) return { refused: 'link_out' }
      this.#links.add(clean)
    }
    if (this.#entries >= this.#limits.maxEntries) return { refused: 'too_many' }
    if (this.#bytes + header.size > this.#limits.maxBytes) return { refused: 'too_large' }
    this.#seen.add(clean)
    this.#entries += 1
    this.#bytes += header.size
    return { path: clean }
  }
}

/**
 * True when a link at `path` with this target ends inside the tree that `path` is relative to, whatever other links are on its way: it goes up
 * first and then only down.
 */
export function staysInside(path: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const down = parts.findIndex((part) => part !== '..')
  if (down !== -1 && parts.slice(down).includes('..')) return false
  const end = posix.normalize(posix.join(posix.dirname(path), target))
  return end !== '..' && !end.startsWith('../')
}

function parents(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
}

export const defaultArchiveLimits: Required<ArchiveLimits> = { maxBytes: 64 << 20, maxEntries: 10_000 }

/**
 * Reads a tar as `GET /containers/{id}/archive` gives it (everything below one first name) within limits. What is
 * refused is named and skipped; a tar that goes on long past its limits is cut off.
 */
export async function readArchive(tar: Readable, limits: ArchiveLimits = {}): Promise<Artifact> {
  const bounds = { ...defaultArchiveLimits, ...limits }
  const judge = new EntryJudge(bounds)
  const entries: ArchiveEntry[] = []
  const refused: RefusedEntry[] = []
  const unpack = extract()
  let skippedBytes = 0
  let cutShort = false
  tar.on('error', (error) => unpack.destroy(error))
  tar.pipe(unpack)
  try {
    for await (const entry of unpack) {
      const header = entry.header
      const path = belowFirst(header.name, header.type === 'directory')
      const size = header.size ?? 0
      const type = header.type ?? 'file'
      const linkname = header.linkname ?? ''
      const verdict = judge.judge({ name: path, type, size, mode: header.mode ?? 0, linkname })
      if ('refused' in verdict) {
        const target = linkname === '' ? {} : { target: linkname }
        if (refused.length < bounds.maxEntries) refused.push({ path, reason: verdict.refused, ...target })
        skippedBytes += size
        cutShort = skippedBytes > bounds.maxBytes || refused.length >= bounds.maxEntries
        if (cutShort) break
        entry.resume()
        continue
      }
      const mode = (header.mode ?? 0) & 0o777
      if (type === 'directory') entries.push({ type: 'directory', path: verdict.path, mode })
      else if (type === 'symlink') entries.push({ type: 'symlink', path: verdict.path, target: linkname })
      else entries.push({ type: 'file', path: verdict.path, mode, data: await collect(entry) })
      entry.resume()
    }
  } finally {
    tar.unpipe(unpack)
    tar.destroy()
    unpack.destroy()
  }
  return { found: true, entries, refused, cutShort, totalBytes: judge.totalBytes }
}

/** `out/a/b` -> `a/b`; the first name itself is `.` for a directory and stays for anything else. */
function belowFirst(name: string, isDirectory: boolean): string {
  const cut = name.indexOf('/')
  if (cut === 0 || name.split('/').includes('..')) return name
  if (cut === -1) return isDirectory ? '.' : name
  return name.slice(cut + 1) === '' ? '.' : name.slice(cut + 1)
}

/** The streams of tar-stream are streamx's; their chunks are Buffers. */
function collect(entry: Source): Promise<Buffer> {
  const chunks: Buffer[] = []
  return new Promise((resolve, reject) => {
    entry.on('data', (chunk) => chunks.push(Buffer.isBuffer(chunk) ? chunk : Buffer.alloc(0)))
    entry.on('end', () => resolve(Buffer.concat(chunks)))
    entry.on('error', reject).on('close', () => reject(new Error('the archive ends inside a file')))
  })
}
