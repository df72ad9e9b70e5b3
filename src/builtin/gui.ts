import { type Environment, type gui, guiEnvironment } from '../envs/index.ts'
import { admin } from '../envs/gui/apps/admin/index.ts'
import { calendar } from '../envs/gui/apps/calendar/index.ts'
import { files } from '../envs/gui/apps/files/index.ts'
import { helpdesk } from '../envs/gui/apps/helpdesk/index.ts'
import { kanban } from '../envs/gui/apps/kanban/index.ts'
import { ledger } from '../envs/gui/apps/ledger/index.ts'
import { mail } from '../envs/gui/apps/mail/index.ts'
import { notes } from '../envs/gui/apps/notes/index.ts'
import { pumps } from '../envs/gui/apps/pumps/index.ts'
import { register } from '../envs/gui/apps/register/index.ts'
import { settings } from '../envs/gui/apps/settings/index.ts'
import { sheet } from '../envs/gui/apps/sheet/index.ts'
import { shop } from '../envs/gui/apps/shop/index.ts'
import { sketch } from '../envs/gui/apps/sketch/index.ts'
import { wizard } from '../envs/gui/apps/wizard/index.ts'
import { cuaBench } from '../envs/gui/importers/cua-bench/index.ts'
import { miniwob } from '../envs/gui/importers/miniwob/index.ts'
import { osworld } from '../envs/gui/importers/osworld/index.ts'
import { webarena } from '../envs/gui/importers/webarena/index.ts'

/** The applications that Paddock brings. */
export const guiApps: readonly gui.App[] = [
  admin,
  calendar,
  files,
  helpdesk,
  kanban,
  ledger,
  mail,
  notes,
  pumps,
  register,
  settings,
  sheet,
  shop,
  sketch,
  wizard,
]

/** The importers that Paddock brings. */
export const guiImporters: readonly gui.Importer[] = [cuaBench, miniwob, osworld, webarena]

/** The environment `gui` with what Paddock brings, and more applications and importers where there are. */
export function builtInGui(o: {
  readonly trustTasks: boolean
  readonly apps?: readonly gui.App[]
  readonly importers?: readonly gui.Importer[]
}): Environment {
  return guiEnvironment({
    trustTasks: o.trustTasks,
    apps: [...guiApps, ...(o.apps ?? [])],
    importers: [...guiImporters, ...(o.importers ?? [])],
  })
}
