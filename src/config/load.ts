import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PaddockError } from '../core/index.ts'
import { requireOwnFile } from './own-file.ts'
import { configFromEnvironment, type EnvironmentVariables } from './environment.ts'
import type { Config, ConfigInput } from './schema.ts'

/** Names looked for in the working directory, in this order. */
export const configFileNames = ['paddock.config.ts', 'paddock.config.js', 'paddock.config.mjs'] as const

export interface LoadedConfig {
  readonly config: Config
  /** Path of the file that was read; null when there is none. */
  readonly file: string | null
  /** What relative paths of the configuration are relative to. */
  readonly directory: string
}

export interface LoadConfigOptions {
  /** Where the file is looked for. */
  readonly cwd: string
  /** An explicit file, which must exist and is trusted; false: no file is read. */
  readonly file?: string | false
  readonly env?: EnvironmentVariables
  /** From the command line; wins over environment and file. */
  readonly overrides?: ConfigInput
}

/** Types the default export of a `paddock.config.ts`; gives back what it gets. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config
}

/**
 * A session policy on top of the configured one, key by key. Throws `CONFIG_INVALID` with place and fix; `source` names
 * where `over` came from.
 */
export async function mergeSessionConfig(
  base: Config['session'],
  over: unknown,
  source: string,
): Promise<Config['session']> {
  const { sessionSchema } = await import('./schema.ts')
  const { explainIssues } = await import('./explain.ts')
  const result = sessionSchema.safeParse(merge(base, over))
  if (!result.success) throw explainIssues(result.error, sessionSchema, source)
  return result.data
}

/** Budgets of a run on top of the configured ones, likewise. */
export async function mergeRunBudgets(
  base: Config['run']['budgets'],
  over: unknown,
  source: string,
): Promise<Config['run']['budgets']> {
  const { budgetsSchema } = await import('./schema.ts')
  const { explainIssues } = await import('./explain.ts')
  const result = budgetsSchema.safeParse(merge(base, over))
  if (!result.success) throw explainIssues(result.error, budgetsSchema, source)
  return result.data
}

/** What is asked of a run's groups on top of what is configured, likewise. */
export async function mergeRunGroup(
  base: Config['run']['group'],
  over: unknown,
  source: string,
): Promise<Config['run']['group']> {
  const { groupSchema } = await import('./schema.ts')
  const { explainIssues } = await import('./explain.ts')
  const result = groupSchema.safeParse(merge(base, over))
  if (!result.success) throw explainIssues(result.error, groupSchema, source)
  return result.data
}

/**
 * File, then environment, then overrides; later ones win key by key. `store.directory` comes back absolute.
 * Throws `CONFIG_NOT_FOUND` for a named file that is not there, `CONFIG_UNTRUSTED` for one of the working directory that
 * somebody else could have put there, and `CONFIG_INVALID` with place and fix.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { configSchema } = await import('./schema.ts')
  const { explainIssues } = await import('./explain.ts')
  const asked = options.file ?? options.env?.PADDOCK_CONFIG
  const file = asked === false ? null : await findFile(options.cwd, asked || undefined)
  const directory = file === null ? options.cwd : dirname(file)
  const fromFile = file === null ? {} : await readFile(file)

  const parse = (input: unknown, source: string): Config => {
    const result = configSchema.safeParse(input)
    if (!result.success) throw explainIssues(result.error, configSchema, source)
    return result.data
  }
  // Each layer alone first, so that an error names the layer it came from.
  if (file !== null) parse(fromFile, file)
  const fromEnvironment = configFromEnvironment(options.env ?? {})
  parse(fromEnvironment, 'environment variables')
  const overrides = options.overrides ?? {}
  parse(overrides, 'command line')

  const config = parse(merge(merge(fromFile, fromEnvironment), overrides), 'configuration')
  // A directory of the file is relative to the file; one of the shell is relative to the shell.
  const fromShell = overrides.store?.directory ?? fromEnvironment.store?.directory
  const base = fromShell === undefined ? directory : options.cwd
  const placed = (name: 'cert' | 'key' | 'ca'): string | null => {
    const file = config.tls[name]
    if (file === null) return null
    const fromShell = overrides.tls?.[name] ?? fromEnvironment.tls?.[name]
    return resolve(fromShell === undefined ? directory : options.cwd, file)
  }
  return {
    config: {
      ...config,
      store: { ...config.store, directory: resolve(base, config.store.directory) },
      tls: {
        cert: placed('cert'),
        key: placed('key'),
        ca: placed('ca'),
        plainHttp: config.tls.plainHttp,
      },
    },
    file,
    directory,
  }
}

/** The file that {@link loadConfig} would read without being told which; null where there is none. */
export async function foundConfig(cwd: string, env: EnvironmentVariables): Promise<string | null> {
  if (env.PADDOCK_CONFIG) return resolve(cwd, env.PADDOCK_CONFIG)
  for (const name of configFileNames) {
    const path = resolve(cwd, name)
    if (await isFile(path)) return path
  }
  return null
}

async function findFile(cwd: string, asked: string | undefined): Promise<string | null> {
  if (asked !== undefined) {
    const path = resolve(cwd, asked)
    if (await isFile(path)) return path
    throw new PaddockError('CONFIG_NOT_FOUND', `${path} does not exist`, { data: { path } })
  }
  const path = await foundConfig(cwd, {})
  if (path !== null) await requireOwnFile(path)
  return path
}

async function readFile(file: string): Promise<Record<string, unknown>> {
  let loaded: unknown
  try {
    loaded = await import(pathToFileURL(file).href)
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError('CONFIG_INVALID', `${file} does not load: ${what}`, {
      fix: 'Correct the named place; the file is plain TypeScript that Node runs without compiling.',
      data: { source: file },
      cause,
    })
  }
  const value = isPlainObject(loaded) ? loaded['default'] : undefined
  if (!isPlainObject(value)) {
    throw new PaddockError('CONFIG_INVALID', `${file} has no default export that is an object`, {
      fix: 'Write `export default defineConfig({ … })`.',
      data: { source: file },
    })
  }
  return value
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
}

/** Objects are merged key by key, everything else is replaced; `undefined` replaces nothing. */
function merge(base: unknown, over: unknown): unknown {
  if (over === undefined) return base
  if (!isPlainObject(base) || !isPlainObject(over)) return over
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(over)) merged[key] = merge(merged[key], value)
  return merged
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
