import { createReadStream } from 'node:fs'
import { readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack, type Pack } from 'tar-stream'
import { PaddockError } from '../../core/index.ts'
import type { FileTree, PutFile } from '../contract/index.ts'
import { staysInside } from './archive-out.ts'

/**
 * A tar for `PUT /containers/{id}/archive`; owner and group unless a file says otherwise. `above`: directories that are
 * made around everything, outermost first. Throws `PATH_UNSAFE`.
 */
export function packFiles(
  files: readonly PutFile[],
  uid: number,
  gid: number,
  above: readonly string[] = [],
): Readable {
  for (const file of files) requireInside(file.path)
  return asStream(async (tar) => {
    const known = new Set<string>()
    const makeDirectories = (parts: readonly string[]): void => {
      for (const [i] of parts.entries()) {
        const name = parts.slice(0, i + 1).join('/')
        if (known.has(name)) continue
        known.add(name)
        tar.entry({ name, type: 'directory', mode: 0o755, uid, gid })
      }
    }
    makeDirectories(above)
    for (const file of files) {
      const parts = [...above, ...file.path.split('/').filter((part) => part !== '' && part !== '.')]
      const isDirectory = file.path.endsWith('/')
      makeDirectories(isDirectory ? parts : parts.slice(0, -1))
      if (isDirectory) continue
      const data = typeof file.data === 'string' ? Buffer.from(file.data, 'utf8') : Buffer.from(file.data)
      const header = { name: parts.join('/'), mode: file.mode ?? 0o644, uid: file.uid ?? uid, gid: file.gid ?? gid }
      await write(tar, header, data)
    }
  })
}

/** What {@link packTree} puts beside a directory's files, and what it leaves out. */
interface TreeOptions {
  readonly extra?: readonly PutFile[]
  /** As for {@link packFiles}. */
  readonly above?: readonly string[]
  /** Names that are left out, relative to the directory. */
  readonly without?: (name: string) => boolean
}

/** A tar of a host directory. Links that leave it and special files throw `PATH_UNSAFE`. */
export function packTree(
  tree: FileTree,
  uid: number,
  gid: number,
  { extra = [], above = [], without = () => false }: TreeOptions = {},
): Readable {
  const owner = { uid: tree.uid ?? uid, gid: tree.gid ?? gid }
  return asStream(async (tar) => {
    for (const [i] of above.entries()) {
      tar.entry({ name: above.slice(0, i + 1).join('/'), type: 'directory', mode: 0o755, uid, gid })
    }
    const below = (name: string): string => [...above, name].join('/')
    const names = await readdir(tree.fromDirectory, { recursive: true, withFileTypes: true })
    const paths = names.map((entry) => join(entry.parentPath, entry.name)).sort()
    const kinds = new Map(names.map((entry) => [join(entry.parentPath, entry.name), entry]))
    for (const path of paths) {
      const kind = kinds.get(path)
      const name = path.slice(tree.fromDirectory.replace(/\/+$/, '').length + 1)
      if (without(name)) continue
      if (kind?.isSymbolicLink()) {
        const linkname = await readlink(path)
        if (!staysInside(name, linkname)) throw unsafe(name, `is a link to ${linkname}, out of its directory`)
        tar.entry({ name: below(name), type: 'symlink', linkname, ...owner })
      } else if (kind?.isDirectory()) {
        tar.entry({ name: below(name), type: 'directory', mode: (await stat(path)).mode & 0o7777, ...owner })
      } else if (kind?.isFile()) {
        const facts = await stat(path)
        const header = { name: below(name), mode: facts.mode & 0o7777, size: facts.size, ...owner }
        if (facts.size < 1 << 20) await write(tar, header, await readAll(path))
        else await pipeline(createReadStream(path, { end: facts.size - 1 }), tar.entry(header))
      } else throw unsafe(name, 'is no file, directory or link')
    }
    for (const file of extra) await write(tar, { name: file.path, mode: file.mode ?? 0o644, ...owner }, file.data)
  })
}

/** Throws `PATH_UNSAFE` for what would leave the directory it is put into. */
export function requireInside(path: string): void {
  const parts = path.split('/')
  if (path === '' || path.startsWith('/') || path.includes('\0') || parts.includes('..')) {
    throw unsafe(path, 'is not a relative path without ".."')
  }
}

function unsafe(path: string, why: string): PaddockError {
  return new PaddockError('PATH_UNSAFE', `${JSON.stringify(path)} ${why}.`, { data: { path } })
}

type Header = { name: string; mode: number; uid: number; gid: number }

/** Resolves when the entry is taken, so that packing follows the reader and not the other way round. */
function write(tar: Pack, header: Header, data: Uint8Array | string): Promise<void> {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : Buffer.from(data)
  return new Promise((resolve, reject) => {
    const entry = tar.entry({ ...header, size: bytes.length }, (error) => (error ? reject(error) : resolve()))
    entry.end(bytes)
  })
}

async function readAll(path: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of createReadStream(path)) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

function asStream(fill: (tar: Pack) => Promise<void>): Readable {
  const tar = pack()
  const out = new PassThrough()
  tar.on('error', (error: Error) => out.destroy(error))
  tar.pipe(out)
  // Files that are being packed are closed when nobody reads any more.
  out.once('close', () => tar.destroy())
  fill(tar).then(
    () => tar.finalize(),
    (error: unknown) => out.destroy(error instanceof Error ? error : new Error(String(error))),
  )
  return out
}
