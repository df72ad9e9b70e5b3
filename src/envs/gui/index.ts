import type { Environment } from '../contract.ts'
import { gui as apps } from './environment.ts'
import { withImporters } from './importers/index.ts'

/**
 * Tasks in a real browser or desktop: our own apps, and those of the formats in `importers/`. With `trustTasks` programs that
 * tasks bring for the host run there, as the caller.
 */
export const guiEnvironment = (o: { readonly trustTasks: boolean }): Environment => withImporters(apps, o)
export { type DesktopOptions, serveDesktop } from './osworld/serve-desktop.ts'

/** {@link guiEnvironment} for tasks that bring no program for the host. */
export const gui = guiEnvironment({ trustTasks: false })
