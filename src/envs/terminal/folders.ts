import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Digest, sha256 } from '../../core/index.ts'
import { directoryDigest } from '../../reward/index.ts'
import type { FileTree, PutFile } from '../../sandbox/index.ts'
import type { TaskOf } from '../define.ts'
import type { CarriedFile, TerminalData } from './data.ts'

/** A directory of a task: of its folder on this machine, or of the files that the task carries itself. */
export interface TaskDirectory {
  /** What `putFiles` takes; null: there is no such directory. */
  readonly files: FileTree | readonly PutFile[] | null
  /** Names of what stands directly in it. */
  readonly names: readonly string[]
  /** Of names, modes and contents. */
  digest(): Promise<Digest>
  /** All of its files, each as text. */
  texts(): Promise<readonly string[]>
}

/** A directory of a task, or of the step that the task is. `path` is below its folder. */
export async function directoryOf(task: TaskOf<TerminalData>, path: string): Promise<TaskDirectory> {
  const { files } = task.data
  return files === undefined ? onDisk(join(task.source, path)) : carried(files, path)
}

/** A file of a task; null: there is none. `path` is below its folder. */
export async function textOf(task: TaskOf<TerminalData>, path: string): Promise<string | null> {
  const { files } = task.data
  if (files !== undefined) return files.find((file) => file.path === path)?.text ?? null
  return readFile(join(task.source, path), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

/** Below its folder, where a task, or a step of one, has its instruction, solution and scripts. */
export function ownFolder({ data }: Pick<TaskOf<TerminalData>, 'data'>): string {
  return data.step === undefined ? '' : join('steps', data.step)
}

/** Directories whose files become `/tests`, later ones over earlier ones: those of the task, and those of its step. */
export async function testsOf(task: TaskOf<TerminalData>): Promise<readonly TaskDirectory[]> {
  const paths = [...new Set(['tests', join(ownFolder(task), 'tests')])]
  const directories = await Promise.all(paths.map((path) => directoryOf(task, path)))
  return directories.filter(({ files }) => files !== null)
}

async function onDisk(fromDirectory: string): Promise<TaskDirectory> {
  const found = await stat(fromDirectory).catch(() => null)
  return {
    files: found === null ? null : { fromDirectory },
    names: await readdir(fromDirectory).catch((): string[] => []),
    digest: () => directoryDigest(fromDirectory),
    texts: async () => {
      const entries = await readdir(fromDirectory, { recursive: true, withFileTypes: true })
      const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
      return Promise.all(paths.map((path) => readFile(path, 'latin1')))
    },
  }
}

function carried(all: readonly CarriedFile[], directory: string): TaskDirectory {
  const below = all.flatMap((file) =>
    file.path.startsWith(`${directory}/`) ? [{ ...file, path: file.path.slice(directory.length + 1) }] : [],
  )
  return {
    files:
      below.length === 0
        ? null
        : below.map(({ path, text, executable }) => ({ path, data: text, mode: executable === true ? 0o755 : 0o644 })),
    names: [...new Set(below.map(({ path }) => path.split('/')[0] ?? ''))],
    digest: () => Promise.resolve(sha256(JSON.stringify(below))),
    texts: () => Promise.resolve(below.map(({ text }) => text)),
  }
}
