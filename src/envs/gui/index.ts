import { gui as apps } from './environment.ts'
import { withImporters } from './importers/index.ts'

/** Tasks in a real browser or desktop: our own apps, and those of the formats in `importers/`. */
export const gui = withImporters(apps)
export { type DesktopOptions, serveDesktop } from './osworld/serve-desktop.ts'
