import { join } from 'node:path'
import {
  type EnvironmentRegistry,
  type EnvironmentSource,
  type GuiPlugins,
  loadGuiPlugins,
  type PublicNetwork,
  registerEnvironments,
  searchEnvironment,
  sql,
  terminalEnvironment,
} from '../envs/index.ts'
import { builtInGui } from './gui.ts'

/**
 * The environments that Paddock brings and those of plugins, all registered in the same way. A module gives its environment
 * as default export or as `environment`: the environment itself, or a function that makes it with the `environmentKit` of
 * `paddock-rl/environment`. Throws `ENVIRONMENT_INVALID` for a module that cannot be loaded, has no environment or takes a
 * name that is taken.
 */
export async function environmentRegistry(
  o: {
    readonly plugins?: readonly EnvironmentSource[]
    /** Applications and importers for the environment `gui`, beside those that Paddock brings. */
    readonly gui?: GuiPlugins
    /** Where relative paths start and npm names are resolved. Default: the current directory. */
    readonly directory?: string
    /** The data directory: where environments keep what they build once. Default: `.paddock`. */
    readonly data?: string
    /** Programs that tasks bring for the host may run, as the caller. Default: they are refused. */
    readonly trustTasks?: boolean
    /** What becomes of terminal tasks that ask for the public internet. Default: they are refused. */
    readonly publicNetwork?: PublicNetwork
  } = {},
): Promise<EnvironmentRegistry> {
  const { data = '.paddock', trustTasks = false, publicNetwork = 'refuse', directory = '.' } = o
  const more = await loadGuiPlugins(o.gui ?? {}, { directory })
  const builtIn = [
    builtInGui({ trustTasks, ...more }),
    searchEnvironment({ directory: join(data, 'corpora') }),
    sql,
    terminalEnvironment({ publicNetwork }),
  ]
  return registerEnvironments([...builtIn, ...(o.plugins ?? [])], { directory })
}
