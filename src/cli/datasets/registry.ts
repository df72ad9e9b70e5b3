import { readFile } from 'node:fs/promises'
import { dirname, normalize, resolve } from 'node:path'
import { z } from 'zod'
import { nearest } from '../../config/index.ts'
import { PaddockError } from '../../core/index.ts'

/** Where the tasks of a data set are. */
export interface Dataset {
  readonly name: string
  readonly version: string
  readonly sources: readonly Source[]
}

/** Folders of one place. */
export interface Source {
  /** `ref`: a whole commit id or a branch; null: whatever is there. */
  readonly from:
    | { readonly kind: 'git'; readonly url: string; readonly ref: string | null }
    | { readonly kind: 'folder'; readonly path: string }
  /** Relative to the repository or the folder. */
  readonly folders: readonly { readonly name: string; readonly path: string }[]
  /** All folders below that hold a task, where the registry does not name them. */
  readonly all: string | null
}

/** How long a registry may be, in bytes. */
const mostBytes = 32 * 1024 * 1024

const about = { name: z.string().min(1), version: z.string().min(1).default('head') }
const text = z.string().min(1)
/** Without the steps in it that lead nowhere. */
const place = text.transform((path) => normalize(path).replace(/\/$/, ''))

/** Of Harbor: each task with its place (`registry.json`). */
const harbor = z.object({
  ...about,
  tasks: z
    .array(
      z.object({
        name: text.nullish(),
        path: place,
        git_url: text.nullish(),
        git_commit_id: text.nullish(),
      }),
    )
    .min(1),
})

/** Of Terminal-Bench before it: one folder of tasks in one repository. */
const terminalBench = z.object({
  ...about,
  github_url: text,
  dataset_path: place,
  branch: text.nullish(),
  commit_hash: text.nullish(),
  task_id_subset: z.array(text).nullish(),
})

/**
 * Finds `<name>@<version>` in a registry file, on this machine or behind `https:`; without a version the only one there is. Throws
 * `REGISTRY_INVALID` with the place, `NOT_FOUND` with what is there.
 */
export async function findDataset(
  registry: string,
  asked: string,
  o: { readonly cwd: string; readonly signal: AbortSignal },
): Promise<Dataset> {
  const { name, version } = split(asked)
  const entries = z.array(z.looseObject(about)).safeParse(parse(registry, await read(registry, o)))
  if (!entries.success) throw invalid(registry, z.prettifyError(entries.error))
  const named = entries.data.filter((entry) => entry.name === name)
  const found = version === null ? named : named.filter((entry) => entry.version === version)
  const [entry] = found
  if (entry === undefined || found.length > 1) {
    const known =
      named.length > 0 ? named.map((one) => `${one.name}@${one.version}`) : entries.data.map((one) => one.name)
    const close = named.length > 0 ? null : nearest(name, known)
    throw new PaddockError(
      'NOT_FOUND',
      `${registry} has ${found.length > 1 ? 'several versions of' : 'no data set'} ${asked}`,
      {
        fix: close === null ? `It has ${[...new Set(known)].slice(0, 20).join(', ')}.` : `Did you mean ${close}?`,
      },
    )
  }
  return datasetOf(registry, entry, o.cwd)
}

function datasetOf(registry: string, entry: { readonly name: string; readonly version: string }, cwd: string): Dataset {
  const { name, version } = entry
  if ('github_url' in entry) {
    const parsed = terminalBench.safeParse(entry)
    if (!parsed.success) throw invalid(registry, `${name}@${version}: ${z.prettifyError(parsed.error)}`)
    const { github_url: url, dataset_path: path, branch, commit_hash: commit, task_id_subset: ids } = parsed.data
    const isPinned = commit !== null && commit !== undefined && commit !== 'head'
    const folders = (ids ?? []).map((id) => ({ name: id, path: `${path}/${id}` }))
    const ref = isPinned ? commit : (branch ?? null)
    const all = ids === null || ids === undefined ? path : null
    return { name, version, sources: [{ from: { kind: 'git', url, ref }, folders, all }] }
  }
  const parsed = harbor.safeParse(entry)
  if (!parsed.success) throw invalid(registry, `${name}@${version}: ${z.prettifyError(parsed.error)}`)
  const places = new Map<string, Source & { folders: Source['folders'][number][] }>()
  for (const task of parsed.data.tasks) {
    const own = task.git_url ?? null
    if (own === null && /^https?:/.test(registry)) {
      throw invalid(
        registry,
        `${name}@${version}: ${task.path} has no git_url, and a registry that is fetched has no folders beside it`,
      )
    }
    const from: Source['from'] =
      own === null
        ? { kind: 'folder', path: dirname(resolve(cwd, registry)) }
        : { kind: 'git', url: own, ref: task.git_commit_id ?? null }
    const key = JSON.stringify(from)
    const place = places.get(key) ?? { from, folders: [], all: null }
    place.folders.push({ name: (task.name ?? task.path).split('/').at(-1) ?? '', path: task.path })
    places.set(key, place)
  }
  return { name, version, sources: [...places.values()] }
}

function split(asked: string): { readonly name: string; readonly version: string | null } {
  const at = asked.lastIndexOf('@')
  if (at < 1) return { name: asked, version: null }
  return { name: asked.slice(0, at), version: asked.slice(at + 1) }
}

async function read(
  registry: string,
  { cwd, signal }: { readonly cwd: string; readonly signal: AbortSignal },
): Promise<string> {
  if (!/^https?:/.test(registry)) {
    return readFile(resolve(cwd, registry), 'utf8').catch((cause: unknown) => {
      throw new PaddockError('NOT_FOUND', `no registry can be read at ${registry}`, {
        cause,
        fix: 'Name a file, or an https: address.',
      })
    })
  }
  const response = await fetch(registry, { signal }).catch((cause: unknown) => {
    throw new PaddockError('DATASET_UNREACHABLE', `${registry} does not answer`, { cause })
  })
  if (!response.ok) throw new PaddockError('DATASET_UNREACHABLE', `${registry} answered ${response.status}`)
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > mostBytes) throw invalid(registry, `it is longer than ${mostBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function parse(registry: string, json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw invalid(registry, `it is not JSON: ${String(cause)}`)
  }
}

function invalid(registry: string, what: string): PaddockError {
  return new PaddockError('REGISTRY_INVALID', `${registry}: ${what}`)
}
