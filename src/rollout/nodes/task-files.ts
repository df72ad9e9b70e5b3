/** The files of a run's tasks, which go to a node by their digests. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { basename, dirname, join, posix, relative, resolve } from 'node:path'
import { type Digest, generatedPlace, PaddockError, sha256 } from '../../core/index.ts'

/** More files than that are no set of tasks. */
const mostFiles = 100_000

/** A file or a symbolic link below the root. Paths have slashes. */
export type TaskFile =
  | { readonly path: string; readonly sha256: Digest; readonly sizeBytes: number; readonly executable: boolean }
  | { readonly path: string; readonly link: string }

/** What a path of tasks holds. */
export interface TaskFiles {
  /** Of the list: the same files give the same. */
  readonly digest: Digest
  /** Of the folder or file. */
  readonly name: string
  /** Name of the only file; null: the root is a directory. */
  readonly single: string | null
  readonly files: readonly TaskFile[]
}

/** Lists what stands at a path, sorted; nothing for generated tasks, which a node generates too. Throws `TASK_UNSUPPORTED` for what cannot go to another machine. */
export async function listTaskFiles(root: string): Promise<TaskFiles> {
  if (generatedPlace(root) !== null) return { digest: sha256(root), name: 'generated', single: null, files: [] }
  const files: TaskFile[] = []
  const found = await lstat(root)
  const single = found.isDirectory() ? null : basename(root)
  const below = async (directory: string): Promise<void> => {
    for (const entry of (await readdir(directory, { withFileTypes: true })).toSorted((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      const path = join(directory, entry.name)
      const name = relative(root, path)
      if (entry.isDirectory()) await below(path)
      else if (entry.isSymbolicLink()) files.push({ path: name, link: insideLink(name, await readlink(path)) })
      else if (entry.isFile()) files.push(await fileAt(path, name))
      else throw unsupported(`${path} is neither a file nor a directory`)
      if (files.length > mostFiles) throw unsupported(`${root} holds more than ${mostFiles} files`)
    }
  }
  if (single === null) await below(root)
  else files.push(await fileAt(root, single))
  return { digest: sha256(JSON.stringify({ single, files })), name: basename(root), single, files }
}

/** Where a file of a list stands. Throws `NOT_FOUND`. */
export function taskFileAt(root: string, { single, files }: TaskFiles, digest: string): string {
  const found = files.find((file) => 'sha256' in file && file.sha256 === digest)
  if (found === undefined) throw new PaddockError('NOT_FOUND', `no file of the tasks has the digest ${digest}`)
  return single === null ? join(root, found.path) : root
}

/** A path of a list that is surely below its root. Throws `PATH_UNSAFE`. */
export function insidePath(path: string): string {
  const clean = posix.normalize(path)
  if (clean !== path || posix.isAbsolute(path) || path === '.' || path.startsWith('..') || path.includes('\0')) {
    throw new PaddockError('PATH_UNSAFE', `${JSON.stringify(path)} is no path below the root of the tasks`)
  }
  return path
}

/** A link that stays below the root. Throws `TASK_UNSUPPORTED`. */
export function insideLink(path: string, target: string): string {
  const root = '/root-of-tasks'
  const ends = resolve(root, dirname(path), target)
  if (posix.isAbsolute(target) || (ends !== root && !ends.startsWith(`${root}/`))) {
    throw unsupported(`the link ${path} leads out of the directory of the tasks, to ${target}`)
  }
  return target
}

async function fileAt(path: string, name: string): Promise<TaskFile> {
  const { size, mode } = await lstat(path)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return { path: name, sha256: hash.digest('hex'), sizeBytes: size, executable: (mode & 0o100) !== 0 }
}

function unsupported(what: string): PaddockError {
  return new PaddockError('TASK_UNSUPPORTED', `Tasks cannot go to a node: ${what}.`)
}
