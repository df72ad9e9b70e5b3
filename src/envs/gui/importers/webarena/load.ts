import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { gui, makeTask, PaddockError, type Task } from '../../../../kits/environment.ts'
import {
  answersSchema,
  storageStateSchema,
  targetsSchema,
  type WebarenaData,
  webarenaFileSchema,
  type WebarenaSet,
  webarenaSetSchema,
} from './data.ts'

const setFix =
  'A set is {"format": "webarena", "tasks": "test.raw.json", "sites": {"SHOPPING": "http://…"}}, with ids, auth, judge where wanted.'
const fileFix =
  'A task of WebArena has task_id, start_url, intent and eval {eval_types, reference_answers, reference_url, program_html}.'

/** A task file of WebArena (one task, or a list of them), or the JSON file of a set. Null for anything else. */
export async function readWebarena({ path, json }: gui.Place, o: gui.ImportOptions): Promise<readonly Task[] | null> {
  if (isTask(Array.isArray(json) ? json[0] : json)) {
    return tasksOf([path], gui.fitted(webarenaSetSchema, { format: 'webarena', tasks: path }, path, setFix), path, o)
  }
  if (typeof json !== 'object' || json === null || !('format' in json) || json.format !== 'webarena') return null
  const set = gui.fitted(webarenaSetSchema, json, path, setFix)
  return tasksOf(await filesAt(resolve(dirname(path), set.tasks), path), set, path, o)
}

async function filesAt(at: string, file: string): Promise<readonly string[]> {
  const facts = await stat(at).catch(() => null)
  if (facts?.isFile() === true) return [at]
  const names = facts === null ? [] : (await readdir(at)).filter((name) => name.endsWith('.json')).toSorted()
  if (names.length > 0) return names.map((name) => join(at, name))
  throw gui.invalid(file, 'tasks', `${at} is no file of tasks and no folder of them`, setFix)
}

async function tasksOf(
  files: readonly string[],
  set: WebarenaSet,
  file: string,
  o: gui.ImportOptions,
): Promise<readonly Task[]> {
  const imported = new gui.Imported(o)
  for (const path of files) {
    const json = await gui.readJson(path)
    const list: readonly unknown[] = Array.isArray(json) ? json : [json]
    for (const [at, row] of list.entries()) {
      const place = list.length === 1 ? path : `${path}: row ${at}`
      const id = isTask(row) ? row.task_id : null
      if (set.ids !== undefined && !set.ids.some((one) => String(one) === String(id))) continue
      const name = id === null ? `${basename(path)} row ${at}` : nameOf(id)
      await imported.take(name, () => taskOf(row, set, place, file))
    }
  }
  return imported.tasks(file, set)
}

async function taskOf(row: unknown, set: WebarenaSet, place: string, file: string): Promise<Task> {
  const given = gui.fitted(webarenaFileSchema, filled(row, set, place), place, fileFix)
  const { eval: judged, intent, task_id: id } = given
  const cannot = (what: string, fix: string) =>
    new PaddockError('TASK_UNSUPPORTED', `${place}: ${what}`, { data: { file, place }, fix })
  const [picture] = [given.image ?? []].flat()
  if (picture !== undefined) {
    throw cannot(`it shows the picture ${picture}, which no agent would be given here`, 'Leave it out.')
  }
  const types = new Set(judged.eval_types)
  const answers = types.has('string_match')
    ? gui.fitted(answersSchema, judged.reference_answers, `${place}: eval.reference_answers`, fileFix)
    : null
  const targets = types.has('program_html')
    ? gui.fitted(targetsSchema, judged.program_html, `${place}: eval.program_html`, fileFix)
    : []
  if (answers?.fuzzy_match !== undefined && set.judge === null) {
    throw cannot('fuzzy_match needs somebody to judge it', 'Give the set a "judge": a program or a service.')
  }
  const code = targets.find(({ url, locator }) => url.startsWith('func') || locator.startsWith('func:'))
  if (code !== undefined)
    throw cannot(
      `it is scored by Python of WebArena's own (${code.url.startsWith('func') ? code.url : code.locator})`,
      'Leave it out.',
    )
  const strange = targets.find(({ locator }) => !/^\s*$|^document\.|^\[\.\.\.document\./.test(locator))
  if (strange !== undefined)
    throw gui.invalid(place, 'eval.program_html', `unknown locator ${strange.locator}`, fileFix)
  if ((judged.url_note ?? 'GOLD in PRED') !== 'GOLD in PRED') {
    throw gui.invalid(
      place,
      'eval.url_note',
      `unknown matching rule ${judged.url_note ?? ''}`,
      'It can be "GOLD in PRED" only.',
    )
  }
  const start = given.start_url.split(' |AND| ')
  const bad = start.find((url) => URL.parse(url) === null)
  if (bad !== undefined) throw gui.invalid(place, 'start_url', `${bad} is no address`, fileFix)
  const { image, schema, maxActions, split, oracles, judge } = set
  const name = nameOf(id)
  const data: WebarenaData = {
    format: 'webarena',
    id: String(id),
    start,
    origins: [...new Set([...Object.values(set.sites), ...start].map((url) => new URL(url).origin))].toSorted(),
    cookies: given.storage_state ? await cookiesOf(given.storage_state, set, file, cannot) : [],
    answers,
    note: judged.string_note ?? '',
    urls: types.has('url_match') ? (judged.reference_url ?? '').split(' |OR| ') : null,
    targets,
    judge,
    screen: set.screen ?? { width: 1280, height: 720 },
    tier: 'browser',
    image,
    schema,
    maxActions,
    oracle: oracles[name] ?? null,
  }
  return makeTask({ name, environment: 'gui', instruction: intent, split, data, source: file })
}

/** The row with `__NAME__` as the user's addresses, wherever it stands. Throws `TASK_INVALID` for one that the set lacks. */
function filled(row: unknown, { sites }: WebarenaSet, place: string): unknown {
  const text = JSON.stringify(row).replaceAll(/__([A-Z][A-Z_]*[A-Z])__/g, (whole, name: string) => {
    const site = sites[name]
    if (site !== undefined) return JSON.stringify(site.replace(/\/$/, '')).slice(1, -1)
    throw gui.invalid(
      place,
      whole,
      `the set says not where ${whole} is`,
      `Give it in the set: "sites": {"${name}": "http://…"}.`,
    )
  })
  return JSON.parse(text)
}

async function cookiesOf(
  state: string,
  { auth }: WebarenaSet,
  file: string,
  cannot: (what: string, fix: string) => PaddockError,
): Promise<WebarenaData['cookies']> {
  const path = auth === null ? null : join(resolve(dirname(file), auth), basename(state))
  if (path === null || (await stat(path).catch(() => null)) === null) {
    throw cannot(`it needs the logged-in state ${state}`, 'Give the folder of these files as "auth" of the set.')
  }
  return gui.fitted(
    storageStateSchema,
    await gui.readJson(path),
    path,
    'It is what Playwright writes as storage_state.',
  ).cookies
}

const taskShape = z.looseObject({ task_id: z.unknown(), intent: z.string(), start_url: z.string(), eval: z.unknown() })

function nameOf(id: unknown): string {
  return `webarena-${String(id)}`
}

function isTask(row: unknown): row is { readonly task_id: unknown } {
  return taskShape.safeParse(row).success
}
