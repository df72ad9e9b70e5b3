import { isAbsolute, resolve } from 'node:path'
import type { Config, LoadedConfig, PluginRef } from '../config/index.ts'
import { PaddockError } from '../core/index.ts'
import type { Environment, EnvironmentRegistry } from '../envs/index.ts'

/**
 * The built-in environments and those of the configuration. `also` is what a command line says: a name, which is looked
 * up later, or the path of a plugin (it begins with `.` or `/`), which `get` then finds under that path too.
 */
export async function environmentsOf(
  loaded: LoadedConfig,
  o: {
    readonly also?: string | undefined
    readonly cwd?: string
    readonly trustTasks?: boolean
    readonly publicNetwork?: Config['tasks']['publicNetwork'] | null
  } = {},
): Promise<EnvironmentRegistry> {
  const [{ environmentRegistry }, { registerEnvironments }] = await Promise.all([
    import('../builtin/index.ts'),
    import('../envs/index.ts'),
  ])
  const plugins = loaded.config.environments.map(asEnvironment)
  const { directory } = loaded
  const data = loaded.config.store.directory
  const trustTasks = o.trustTasks === true || loaded.config.tasks.trust
  const publicNetwork = o.publicNetwork ?? loaded.config.tasks.publicNetwork
  const rest = { gui: loaded.config.gui, directory, data, trustTasks, publicNetwork }
  const path = pluginPath(o.also ?? '', o.cwd ?? directory)
  if (path === null) return environmentRegistry({ plugins, ...rest })
  const own = await registerEnvironments([path])
  const [name = ''] = own.names
  const listed = plugins.filter((plugin) => typeof plugin !== 'string' || pluginPath(plugin, directory) !== path)
  const registry = await environmentRegistry({ plugins: [...listed, own.get(name)], ...rest })
  return { ...registry, get: (asked) => registry.get(asked === o.also || asked === path ? name : asked) }
}

/** Finds an environment: of a run, with what that names and trusts, or as the configuration has it. */
export type FindEnvironment = (
  name: string,
  run: { readonly environment: string; readonly trustTasks: boolean } | null,
) => Promise<Environment>

/** {@link FindEnvironment} over {@link environmentsOf}; what an environment has open stays open. */
export function environmentFinder(loaded: LoadedConfig): FindEnvironment {
  const known = new Map<string, Promise<EnvironmentRegistry>>()
  return async (name, run) => {
    const asked = JSON.stringify(run === null ? null : [run.environment, run.trustTasks])
    const found = known.get(asked) ?? environmentsOf(loaded, run === null ? {} : { also: run.environment, ...run })
    known.set(asked, found)
    found.catch(() => known.delete(asked))
    return (await found).get(name)
  }
}

/** The absolute path that a command line or a configuration means; null for a name. */
export function pluginPath(text: string, directory: string): string | null {
  return text.startsWith('.') || isAbsolute(text) ? resolve(directory, text) : null
}

function asEnvironment(plugin: PluginRef): Environment | string {
  if (typeof plugin === 'string' || isEnvironment(plugin)) return plugin
  throw new PaddockError('ENVIRONMENT_INVALID', 'an object under environments is not an environment', {
    fix: 'List what defineEnvironment({ … }) returns, an npm name or a path.',
  })
}

/** Enough to hand it to the registry, which checks the rest. */
function isEnvironment(value: object): value is Environment {
  return 'name' in value && 'apiVersion' in value && 'verify' in value
}
