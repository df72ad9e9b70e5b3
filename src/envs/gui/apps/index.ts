import { admin } from './admin/index.ts'
import { calendar } from './calendar/index.ts'
import { helpdesk } from './helpdesk/index.ts'
import { files } from './files/index.ts'
import { kanban } from './kanban/index.ts'
import type { App } from './kit/index.ts'
import { ledger } from './ledger/index.ts'
import { mail } from './mail/index.ts'
import { notes } from './notes/index.ts'
import { pumps } from './pumps/index.ts'
import { register } from './register/index.ts'
import { settings } from './settings/index.ts'
import { sheet } from './sheet/index.ts'
import { shop } from './shop/index.ts'
import { sketch } from './sketch/index.ts'
import { wizard } from './wizard/index.ts'

export { type App, appSite, type AppSite, type Files, type Plan, steps } from './kit/index.ts'

const all: readonly App[] = [
  admin,
  calendar,
  helpdesk,
  files,
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

/** The apps of Paddock, by name. */
export const apps: ReadonlyMap<string, App> = new Map(all.map((app) => [app.name, app]))
