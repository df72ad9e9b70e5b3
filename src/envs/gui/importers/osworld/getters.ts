import { posix } from 'node:path'
import { z } from 'zod'
import { gui } from '../../../../kits/environment.ts'
import type { Ask } from './data.ts'
import type { Found } from './metrics/index.ts'
import type { Stage } from './setup.ts'

type Getter = (ask: Ask, stage: Stage) => Promise<Found>

const oneOrMany = z.union([z.string(), z.array(z.string())])
const files = z.object({
  path: oneOrMany,
  dest: oneOrMany.optional(),
  multi: z.boolean().default(false),
  gives: z.array(z.int()).default([0]),
})
const command = z.object({
  command: oneOrMany,
  shell: z.union([z.boolean(), z.string().transform((text) => text !== '')]).default(false),
})
/** Largest file that is compared. */
const maxFileBytes = 32 << 20
/** Longest time in which Chromium writes its bookmarks down (components/bookmarks/browser/bookmark_storage.cc: 2.5 s). */
const bookmarksMs = 3000

/**
 * What tasks ask of a machine when they are scored, by OSWorld's names (desktop_env/evaluators/getters of
 * ljxpython/OSWorldUse at b5007a9). They run after the agent's tools are gone.
 */
const getters: Readonly<Record<string, Getter>> = {
  rule: async (ask) => value(ask['rules'] ?? null),
  vm_file: async (ask, { machine }) =>
    chosen(ask, async (path, dest) => {
      const data = await machine.file(path)
      return data === null || data.length > maxFileBytes ? null : { kind: 'file', name: posix.basename(dest), data }
    }),
  cloud_file: async (ask, { assets, id }) =>
    chosen(ask, async (url, dest) => {
      const data = assets === null ? null : await gui.asset(assets, { id, url, name: dest })
      return data === null ? null : { kind: 'file', name: posix.basename(dest), data }
    }),
  cache_file: async (ask, { cache }) => {
    const { path } = z.object({ path: z.string() }).parse(ask)
    const data = cache.get(path)
    return data === undefined ? null : { kind: 'file', name: posix.basename(path), data }
  },
  vm_command_line: async (ask, { machine }) => {
    const { command: line, shell } = command.parse(ask)
    return value((await machine.execute(line, { shell })).output)
  },
  vm_command_error: async (ask, { machine }) => {
    const { command: line, shell } = command.parse(ask)
    return value((await machine.execute(line, { shell })).error)
  },
  list_directory: async (ask, { machine }) => value(await machine.list(z.object({ path: z.string() }).parse(ask).path)),
  vm_screen_size: async (_ask, { machine }) => value(machine.screen),
  vm_window_size: async (ask, { machine }) =>
    value(await machine.windowSize(z.object({ app_class_name: z.string() }).parse(ask).app_class_name)),
  accessibility_tree: async (_ask, { machine }) => value(await machine.accessibility()),
  open_tabs_info: async (_ask, { machine }) => value(await machine.tabs()),
  active_tab_info: async (_ask, { machine }) => value(await machine.front()),
  active_url_from_accessTree: async (ask, stage) => value(await shownUrl(ask, stage)),
  active_tab_url_parse: async (ask, stage) => {
    const shape = z.object({
      parse_keys: z.array(z.string()),
      replace: z.record(z.string(), z.string()).default({}),
      split_list: z.boolean().default(false),
    })
    const { parse_keys: keys, replace, split_list: split } = shape.parse(ask)
    const query = new URLSearchParams(/\?([^#]*)/.exec(await shownUrl(ask, stage))?.[1] ?? '')
    const pairs = keys.map((key) => [replace[key] ?? key, query.get(key) ?? ''] as const)
    return value(Object.fromEntries(pairs.map(([key, text]) => [key, split ? text.split(',') : text])))
  },
  url_dashPart: async (ask, stage) => {
    const shape = z.object({
      partIndex: z.coerce.number(),
      needDeleteId: z.boolean().default(false),
      returnType: z.enum(['string', 'json']),
      key: z.string().default(''),
    })
    const { partIndex, needDeleteId, returnType, key } = shape.parse(ask)
    const part = (await shownUrl(ask, stage)).split('/').at(partIndex)
    if (part === undefined) return null
    const text = needDeleteId ? (part.split('?')[0] ?? '') : part
    return value(returnType === 'json' ? { [key]: text } : text)
  },
  bookmarks: async (_ask, { machine }) => {
    await new Promise((resolve) => setTimeout(resolve, bookmarksMs))
    const data = await machine.file('/var/lib/browser/profile/Default/Bookmarks')
    const parsed = z
      .looseObject({ roots: z.unknown() })
      .safeParse(data === null ? null : JSON.parse(data.toString('utf8')))
    return value(parsed.success ? parsed.data.roots : [])
  },
}

/** What a getter finds. Throws a ZodError for an ask that lacks what it needs, and faults of the machine. */
export async function get(ask: Ask, stage: Stage): Promise<Found> {
  const getter = getters[ask.type]
  return getter === undefined ? null : getter(ask, stage)
}

/** True where there is a getter of this name. */
export function knowsGetter(name: string): boolean {
  return name in getters
}

const ofBrowser = new Set([
  'open_tabs_info',
  'active_tab_info',
  'active_url_from_accessTree',
  'active_tab_url_parse',
  'url_dashPart',
  'bookmarks',
])

/** True for a getter that needs the browser itself, and not only the machine around it. */
export function asksBrowser(name: string): boolean {
  return ofBrowser.has(name)
}

/** Names of all getters. */
export const getterNames: readonly string[] = Object.keys(getters)

/** Files that a getter needs from the user's assets. */
export function neededByAsk(ask: Ask): readonly { readonly url: string; readonly name: string }[] {
  if (ask.type !== 'cloud_file') return []
  const parsed = files.safeParse(ask).data
  const paths = [parsed?.path ?? []].flat()
  const names = [parsed?.dest ?? []].flat()
  return paths.map((url, at) => ({ url, name: names[at] ?? posix.basename(url) }))
}

async function chosen(
  ask: Ask,
  one: (path: string, dest: string) => Promise<Extract<Found, { kind: 'file' }> | null>,
): Promise<Found> {
  const { path, dest, gives } = files.parse(ask)
  const paths = [path].flat()
  const names = [dest ?? []].flat()
  const wanted = paths.flatMap((each, at) =>
    gives.includes(at) ? [[each, names[at] ?? posix.basename(each)] as const] : [],
  )
  const found = await Promise.all(wanted.map(([each, name]) => one(each, name)))
  return found.length === 1 ? (found[0] ?? null) : { kind: 'files', files: found }
}

/** The address in front as Chrome's address bar shows it, behind the prefix that the task gives (default `https://`). */
async function shownUrl(ask: Ask, { machine }: Stage): Promise<string> {
  const prefix = z.object({ goto_prefix: z.string().default('https://') }).parse(ask).goto_prefix
  const [front] = await machine.tabs()
  return prefix + (front?.url ?? '').replace(/^https?:\/\/(?:www\.)?/, '')
}

function value(found: unknown): Found {
  return found === null ? null : { kind: 'value', value: found }
}
