import { PaddockError, type LoadedConfig, type PluginRef } from '../core/index.ts'
import type { Environment, EnvironmentRegistry } from '../envs/index.ts'

/** The built-in environments and those of the configuration. */
export async function environmentsOf(loaded: LoadedConfig): Promise<EnvironmentRegistry> {
  const { environmentRegistry } = await import('../envs/index.ts')
  return environmentRegistry({ plugins: loaded.config.environments.map(asEnvironment), directory: loaded.directory })
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
