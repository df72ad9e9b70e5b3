import type { PluginRef } from '../../config/index.ts'
import { PaddockError } from '../../core/index.ts'
import { importPlugin } from '../plugin-module.ts'
import type { App } from './application/index.ts'
import type { Importer } from './importer/index.ts'

/**
 * Applications and importers of `gui`: each what `gui.defineApp` or `gui.defineImporter` returns, or where to find it (an npm
 * name, or a path that begins with `.` or `/`).
 */
export interface GuiPlugins {
  readonly apps?: readonly PluginRef[]
  readonly importers?: readonly PluginRef[]
}

/**
 * Loads applications and importers and checks them, those that Paddock brings as those of a user. A module gives one as
 * default export, or as `app` or `importer`: itself, or a function that makes it with the environment kit.
 * Throws `ENVIRONMENT_INVALID` for a module that cannot be loaded, gives none or takes a name that is taken.
 */
export async function loadGuiPlugins(
  { apps = [], importers = [] }: GuiPlugins,
  o: { readonly directory: string },
): Promise<{ readonly apps: readonly App[]; readonly importers: readonly Importer[] }> {
  const load = async (source: PluginRef, name: Kind): Promise<unknown> =>
    typeof source === 'string' ? importPlugin(source, { directory: o.directory, name }) : source
  const loaded: { apps: App[]; importers: Importer[] } = { apps: [], importers: [] }
  for (const source of apps) {
    const app = await load(source, 'app')
    requireApp(app, typeof source === 'string' ? source : undefined)
    loaded.apps.push(app)
  }
  for (const source of importers) {
    const importer = await load(source, 'importer')
    requireImporter(importer, typeof source === 'string' ? source : undefined)
    loaded.importers.push(importer)
  }
  return loaded
}

/** Names of tools that every gui task has, or may have. */
const reserved = /^(browser_.*|computer|terminal_run)$/

/** Apps by name. Throws `ENVIRONMENT_INVALID` for one that is none, and for a name or tool that is taken. */
export function appsByName(apps: readonly App[]): ReadonlyMap<string, App> {
  const known = new Map<string, App>()
  for (const app of apps) {
    requireApp(app)
    requireFree(known, app.name, 'app')
    const names = app.open(0).tools.map(({ name }) => name)
    const taken = names.find((name, at) => reserved.test(name) || names.indexOf(name) !== at)
    if (taken !== undefined) {
      throw new PaddockError('ENVIRONMENT_INVALID', `Gui app ${app.name}: the tool name ${taken} is taken`, {
        data: { app: app.name, part: 'tools' },
        fix: 'Name it otherwise: browser_…, computer and terminal_run are tools of every gui task.',
      })
    }
    known.set(app.name, app)
  }
  return known
}

/** Throws `ENVIRONMENT_INVALID` for one that is no importer, and for a name that is taken. */
export function importersByName(importers: readonly Importer[]): ReadonlyMap<string, Importer> {
  const known = new Map<string, Importer>()
  for (const importer of importers) {
    requireImporter(importer)
    requireFree(known, importer.name, 'importer')
    known.set(importer.name, importer)
  }
  return known
}

type Kind = 'app' | 'importer'

function requireFree(known: ReadonlyMap<string, unknown>, name: string, kind: Kind): void {
  if (!known.has(name)) return
  throw new PaddockError('ENVIRONMENT_INVALID', `There are two gui ${kind}s named ${name}`, {
    fix: 'Rename the plugin, or list it once.',
  })
}

function requireApp(value: unknown, source?: string): asserts value is App {
  requireMade(value, 'app', ['goals', 'plan', 'open', 'workspace'], source)
}

function requireImporter(value: unknown, source?: string): asserts value is Importer {
  requireMade(value, 'importer', ['read', 'hostProgram', 'environment'], source)
}

function requireMade(value: unknown, kind: Kind, parts: readonly string[], source?: string): void {
  const made =
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    'apiVersion' in value &&
    value.apiVersion === 1 &&
    parts.every((part) => part in value)
  if (made) return
  const what = source ?? `the object under gui.${kind}s`
  const define = kind === 'app' ? 'gui.defineApp' : 'gui.defineImporter'
  throw new PaddockError('ENVIRONMENT_INVALID', `${what} gives no gui ${kind} of API version 1`, {
    data: source === undefined ? {} : { source },
    fix: `Export default ${define}({ … }) from the plugin.`,
  })
}
