import type { Environment } from '../contract.ts'
import type { App } from './application/index.ts'
import { appEnvironment } from './environment.ts'
import { type Importer, withImporters } from './importer/index.ts'
import { appsByName, importersByName } from './plugins.ts'

/**
 * Tasks in a real browser or desktop: of these applications, and in the formats of these importers. With `trustTasks`
 * programs that tasks bring for the host run there, as the caller. Throws `ENVIRONMENT_INVALID` for what is no application
 * or importer of API version 1, and for a name that is taken.
 */
export function guiEnvironment(o: {
  readonly apps: readonly App[]
  readonly importers: readonly Importer[]
  readonly trustTasks: boolean
}): Environment {
  return withImporters(appEnvironment(appsByName(o.apps)), importersByName(o.importers), o)
}

export { type DesktopOptions, serveDesktop } from './osworld/serve-desktop.ts'
export { type GuiPlugins, loadGuiPlugins } from './plugins.ts'
