import { execFile } from 'node:child_process'
import { cp, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { makeFolder, PaddockError } from '../../core/index.ts'
import type { Dataset, Source } from './registry.ts'

/** What stands beside the tasks of a data set: where each came from. */
export const datasetFile = 'dataset.json'

export interface TakenTask {
  readonly name: string
  /** Null: a folder of this machine. */
  readonly url: string | null
  readonly commit: string | null
  readonly path: string
}

/** In no transport that git has beside these does an address stay an address: `ext::` runs a program. */
const transports = 'file:git:http:https:ssh'

const run = promisify(execFile)

/**
 * Puts the task folders of a data set below `into`, whole or not at all, with {@link datasetFile} beside them. `only`: those of these
 * names. Throws `DATASET_UNREACHABLE`, `REGISTRY_INVALID`, `NOT_FOUND`, `USAGE` where `into` is there already.
 */
export async function takeDataset(
  dataset: Dataset,
  o: { readonly into: string; readonly only: readonly string[]; readonly signal: AbortSignal },
): Promise<readonly TakenTask[]> {
  if ((await lstat(o.into).catch(() => null)) !== null) {
    throw new PaddockError('USAGE', `${o.into} is there already`, { fix: 'Name a new folder.' })
  }
  await makeFolder(dirname(o.into))
  const beside = await mkdtemp(join(dirname(o.into), '.paddock-fetch-'))
  try {
    const whole = join(beside, 'tasks')
    await mkdir(whole)
    const taken: TakenTask[] = []
    for (const [index, source] of dataset.sources.entries()) {
      const wanted = source.folders.filter(({ name }) => o.only.length === 0 || o.only.includes(name))
      if (wanted.length === 0 && source.all === null) continue
      const found = await foldersOf({ ...source, folders: wanted }, join(beside, `source-${index}`), o)
      for (const task of found) {
        await requireNoPointers(task.from, task.name)
        await cp(task.from, join(whole, task.name), {
          recursive: true,
          verbatimSymlinks: true,
          errorOnExist: true,
          force: false,
        })
        taken.push({ name: task.name, url: task.url, commit: task.commit, path: task.path })
      }
    }
    const missing = o.only.filter((name) => taken.every((task) => task.name !== name))
    if (missing.length > 0) {
      throw new PaddockError('NOT_FOUND', `${dataset.name}@${dataset.version} has no task ${missing.join(', ')}`, {
        fix: 'Leave out --task to fetch every task; its folder then shows their names.',
      })
    }
    if (taken.length === 0) {
      throw new PaddockError(
        'REGISTRY_INVALID',
        `${dataset.name}@${dataset.version} has no task where the registry says`,
      )
    }
    taken.sort((a, b) => (a.name < b.name ? -1 : 1))
    const told = { name: dataset.name, version: dataset.version, tasks: taken }
    await writeFile(join(whole, datasetFile), `${JSON.stringify(told, null, 2)}\n`)
    await rename(whole, o.into)
    return taken
  } finally {
    await rm(beside, { recursive: true, force: true })
  }
}

type Found = TakenTask & { readonly from: string }

async function foldersOf(
  source: Source,
  place: string,
  { only, signal }: { readonly only: readonly string[]; readonly signal: AbortSignal },
): Promise<readonly Found[]> {
  const { from, folders, all } = source
  for (const { name, path } of folders) requirePlain(name, path)
  if (all !== null) requirePlain('task', all)
  const isGit = from.kind === 'git'
  const paths = [...folders.map(({ path }) => path), ...(all === null ? [] : [all])]
  const commit = isGit ? await checkOut(from, paths, place, signal) : null
  const root = isGit ? place : from.path
  const url = isGit ? from.url : null
  const named = folders.map(({ name, path }) => ({ name, path }))
  if (all !== null) {
    const names: readonly string[] = await readdir(join(root, all)).catch(() => [])
    for (const name of names.toSorted()) {
      if (only.length > 0 && !only.includes(name)) continue
      if ((await lstat(join(root, all, name))).isDirectory()) named.push({ name, path: `${all}/${name}` })
    }
  }
  return Promise.all(named.map(async ({ name, path }) => ({ name, url, commit, path, from: await inside(root, path) })))
}

/** The commit that is there afterwards. Only the named folders are fetched, where the server can do that. */
async function checkOut(
  { url, ref }: { readonly url: string; readonly ref: string | null },
  paths: readonly string[],
  place: string,
  signal: AbortSignal,
): Promise<string> {
  const wanted = ref ?? 'HEAD'
  if (url.startsWith('-') || !/^[\w./-]+$/.test(wanted) || wanted.startsWith('-')) {
    throw new PaddockError(
      'REGISTRY_INVALID',
      `${JSON.stringify(url)} at ${JSON.stringify(wanted)} is no repository and commit`,
    )
  }
  await mkdir(place)
  const env = { ...process.env, GIT_ALLOW_PROTOCOL: transports, GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' }
  const git = async (...args: readonly string[]): Promise<string> => {
    try {
      const { stdout } = await run('git', ['-c', 'core.hooksPath=/dev/null', ...args], { cwd: place, env, signal })
      return stdout.trim()
    } catch (cause) {
      signal.throwIfAborted()
      const { code, stderr = '' } = cause as { readonly code?: unknown; readonly stderr?: string }
      if (code === 'ENOENT')
        throw new PaddockError('DATASET_UNREACHABLE', 'there is no git on this machine', { fix: 'Install git.' })
      const last = stderr.trim().split('\n').at(-1) ?? String(cause)
      throw new PaddockError('DATASET_UNREACHABLE', `${url} at ${wanted}: ${last}`, { cause })
    }
  }
  await git('init', '--quiet')
  await git('remote', 'add', 'origin', '--', url)
  await git('config', 'remote.origin.promisor', 'true')
  await git('sparse-checkout', 'set', '--no-cone', '--', ...paths.map((path) => `/${path}`))
  await git('fetch', '--quiet', '--depth=1', '--no-tags', '--filter=blob:none', 'origin', wanted)
  await git('checkout', '--quiet', 'FETCH_HEAD')
  return git('rev-parse', 'HEAD')
}

/** A folder in a checkout or beside a registry; a link on the way may not lead out of it. */
async function inside(root: string, path: string): Promise<string> {
  const [real, at] = await Promise.all([realpath(root), realpath(join(root, path)).catch(() => null)])
  if (at === null || !(await stat(at)).isDirectory()) {
    throw new PaddockError('REGISTRY_INVALID', `there is no folder ${path} where the registry says that a task is`)
  }
  if (!at.startsWith(real + sep)) throw new PaddockError('REGISTRY_INVALID', `${path} leads out of its repository`)
  return at
}

function requirePlain(name: string, path: string): void {
  const parts = path.split('/')
  const isPlain =
    /^[\w][\w.-]*$/.test(name) && parts.every((part) => part !== '..' && part !== '' && !/[*?[\\!\n]/.test(part))
  if (!isPlain) {
    throw new PaddockError(
      'REGISTRY_INVALID',
      `${JSON.stringify(name)} at ${JSON.stringify(path)} is no name and place of a task folder`,
    )
  }
}

/** Large files that git keeps elsewhere come as pointers where git-lfs is not installed: such a task would be another task. */
async function requireNoPointers(folder: string, task: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    if ((await stat(file)).size > 1024) continue
    if ((await readFile(file, 'latin1')).startsWith('version https://git-lfs')) {
      throw new PaddockError('DATASET_UNREACHABLE', `task ${task}: ${basename(file)} is a pointer of git-lfs`, {
        fix: 'Install git-lfs (`git lfs install`), and fetch again.',
      })
    }
  }
}
