import { PaddockError } from '../core/index.ts'
import type { Environment } from './contract.ts'
import { importPlugin } from './plugin-module.ts'

/** An environment by itself, or where to find it: a npm name, or a path that begins with `.` or `/`. */
export type EnvironmentSource = Environment | string

/** The environments of this process: those built in and those of the configuration. */
export interface EnvironmentRegistry {
  readonly names: readonly string[]
  /** Throws `ENVIRONMENT_UNKNOWN` with the names that exist. */
  get(name: string): Environment
}

/**
 * Loads environments and checks them, those that Paddock brings as those of a user. A module gives its environment as
 * default export or as `environment`: the environment itself, or a function that makes it with the environment kit.
 * Throws `ENVIRONMENT_INVALID` for a module that cannot be loaded, has no environment or takes a name that is taken.
 */
export async function registerEnvironments(
  sources: readonly EnvironmentSource[],
  o: {
    /** Where relative paths start and npm names are resolved. Default: the current directory. */
    readonly directory?: string
  } = {},
): Promise<EnvironmentRegistry> {
  const known = new Map<string, Environment>()
  for (const source of sources) {
    const isPlace = typeof source === 'string'
    const found: unknown = isPlace
      ? await importPlugin(source, { directory: o.directory ?? '.', name: 'environment' })
      : source
    requireContract(found, isPlace ? source : 'the object in the configuration')
    if (known.has(found.name)) {
      throw new PaddockError('ENVIRONMENT_INVALID', `There are two environments named ${found.name}`, {
        fix: 'Rename the plugin, or list it once.',
      })
    }
    known.set(found.name, found)
  }
  const names = [...known.keys()].toSorted()
  return {
    names,
    get: (name) => {
      const found = known.get(name)
      if (found !== undefined) return found
      throw new PaddockError('ENVIRONMENT_UNKNOWN', `There is no environment ${JSON.stringify(name)}`, {
        data: { name, known: names },
        fix: `Use one of ${names.join(', ')}, or list the plugin under environments in paddock.config.ts.`,
      })
    },
  }
}

function requireContract(value: unknown, source: string): asserts value is Environment {
  const made =
    typeof value === 'object' &&
    value !== null &&
    'apiVersion' in value &&
    value.apiVersion === 1 &&
    'name' in value &&
    typeof value.name === 'string' &&
    'verify' in value &&
    'scripts' in value
  if (made) return
  throw new PaddockError('ENVIRONMENT_INVALID', `${source} gives no environment of API version 1`, {
    data: { source },
    fix: 'Export default ({ defineEnvironment }) => defineEnvironment({ … }) from the plugin.',
  })
}
