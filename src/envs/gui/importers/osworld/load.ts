import { readdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { gui, makeTask, PaddockError, type Task } from '../../../../kits/environment.ts'
import {
  type Ask,
  askSchema,
  type Measure,
  type OsworldData,
  type OsworldFile,
  osworldFileSchema,
  type OsworldSet,
  osworldSetSchema,
} from './data.ts'
import { asksBrowser, getterNames, knowsGetter, neededByAsk } from './getters.ts'
import { metrics } from './metrics/index.ts'
import { neededBy, stepProblem } from './setup.ts'

const setFix =
  'A set is {"format": "osworld", "directory": "<task files>"}, with ids, assets, sidecar, oracles where wanted.'
const fileFix =
  'A task of OSWorld has id, instruction, config and evaluator {func, result, expected, conj, options, postconfig}.'

/** A task file of OSWorld, a folder of domains with such files, or the JSON file of a set. Null for anything else. */
export async function readOsworld(
  { path, kind, json }: gui.Place,
  o: gui.ImportOptions,
): Promise<readonly Task[] | null> {
  if (kind === 'directory') {
    const files = await filesBelow(path, 2)
    return (await areTasks(files))
      ? tasksOf(files, gui.fitted(osworldSetSchema, { format: 'osworld', directory: path }, path, setFix), path, o)
      : null
  }
  if (isTask(json))
    return tasksOf([path], gui.fitted(osworldSetSchema, { format: 'osworld', directory: path }, path, setFix), path, o)
  if (typeof json !== 'object' || json === null || !('format' in json) || json.format !== 'osworld') return null
  const set = gui.fitted(osworldSetSchema, json, path, setFix)
  const at = resolve(dirname(path), set.directory)
  const files = at.endsWith('.json') ? [at] : await filesBelow(at, 3)
  if (files.length === 0) throw gui.invalid(path, 'directory', `${set.directory} holds no .json file`, setFix)
  return tasksOf(files, set, path, o)
}

/** By the first of them that can be read. */
async function areTasks(files: readonly string[]): Promise<boolean> {
  for (const file of files) {
    const json = await gui.readJson(file).catch(() => undefined)
    if (json !== undefined) return isTask(json)
  }
  return false
}

async function tasksOf(
  files: readonly string[],
  set: OsworldSet,
  file: string,
  o: gui.ImportOptions,
): Promise<readonly Task[]> {
  const imported = new gui.Imported(o)
  for (const path of files) {
    // Files of OSWorld are named by their tasks.
    await imported.take(basename(path, '.json'), async () => {
      const json = await gui.readJson(path)
      const id = isTask(json) ? String(json.id) : null
      if (set.ids !== undefined && (id === null || !set.ids.some((one) => id.startsWith(one)))) return []
      return taskOf(gui.fitted(osworldFileSchema, json, path, fileFix), set, path, file)
    })
  }
  return imported.tasks(file, set)
}

async function taskOf(given: OsworldFile, set: OsworldSet, file: string, source: string): Promise<Task> {
  const { id, evaluator } = given
  const cannot = (place: string, what: string, fix: string) =>
    new PaddockError('TASK_UNSUPPORTED', `${file}: ${place}: ${what}`, { data: { file, place }, fix })
  for (const [name, steps] of [
    ['config', given.config],
    ['evaluator.postconfig', evaluator.postconfig],
  ] as const) {
    for (const [at, step] of steps.entries()) {
      const problem = stepProblem(step)
      if (problem !== null) throw cannot(`${name}.${at}`, problem, 'Leave the task out.')
    }
  }
  const measures = measuresOf(given, file)
  for (const { func, result, expected } of measures) {
    if (!metrics.has(func) && set.sidecar === null) {
      throw cannot('evaluator.func', `the metric ${func} is not built in`, 'Give the set a sidecar that measures it.')
    }
    for (const ask of [result, expected]) {
      if (ask === null || knowsGetter(ask.type)) continue
      throw cannot('evaluator', `there is no getter ${ask.type}`, `Tasks with ${getterNames.join(', ')} can be run.`)
    }
  }
  const asks = measures.flatMap(({ result, expected }) => [result, expected].filter((ask) => ask !== null))
  const needed = [...[...given.config, ...evaluator.postconfig].flatMap(neededBy), ...asks.flatMap(neededByAsk)]
  const assets = set.assets === null ? null : resolve(dirname(source), set.assets)
  for (const one of needed) {
    const found = assets === null ? null : await gui.assetFile(assets, { id, ...one })
    if (found !== null) continue
    throw cannot(
      'config',
      `${one.url} would be downloaded, and a box has no network`,
      `Put the file into the folder that "assets" of the set names, as ${join(id, one.name.split('/').at(-1) ?? '')}.`,
    )
  }
  if (set.machine !== null) {
    const asked =
      asks.find(({ type }) => asksBrowser(type))?.type ??
      [...given.config, ...evaluator.postconfig].find(({ type }) => type.startsWith('chrome_'))?.type
    if (asked !== undefined)
      throw cannot(
        'evaluator',
        `${asked} asks the browser, which a machine does not offer`,
        'Run it on a box: leave "machine" out.',
      )
  }
  const { image, schema, maxActions, sidecar, machine, boxImage, sites, split, oracles } = set
  const data: OsworldData = {
    format: 'osworld',
    id,
    apps: given.related_apps,
    config: given.config,
    postconfig: evaluator.postconfig,
    conj: evaluator.conj,
    measures,
    screen: set.screen ?? { width: 1920, height: 1080 },
    tier: 'desktop',
    image,
    schema,
    maxActions,
    oracle: oracles[id] ?? null,
    sidecar,
    machine,
    boxImage,
    assets: set.assets,
    sites,
  }
  return makeTask({ name: id, environment: 'gui', instruction: given.instruction, split, data, source })
}

/** One metric or several, each with its own of everything, as `_set_evaluator_info` of desktop_env.py takes them apart. */
function measuresOf({ evaluator }: OsworldFile, file: string): Measure[] {
  const { func, result, expected, options = {} } = evaluator
  if (func === 'infeasible') return []
  const names = [func].flat()
  const many = Array.isArray(func)
  const nth = (value: unknown, at: number): Ask | null => {
    const one: unknown = many && Array.isArray(value) ? value[at] : many && at > 0 ? undefined : value
    return askSchema.safeParse(one).data ?? null
  }
  for (const [name, value] of [
    ['result', result],
    ['expected', expected],
  ] as const) {
    if (many !== Array.isArray(value) && value !== undefined && Object.keys(value).length > 0) {
      throw gui.invalid(file, `evaluator.${name}`, 'must be a list exactly where func is one', fileFix)
    }
    if (many && Array.isArray(value) && value.length !== names.length) {
      throw gui.invalid(file, `evaluator.${name}`, `has ${value.length} members for ${names.length} metrics`, fileFix)
    }
  }
  return names.map((name, at) => ({
    func: name,
    result: nth(result, at),
    expected: nth(expected, at),
    options: (Array.isArray(options) ? options[at] : options) ?? {},
  }))
}

function isTask(json: unknown): json is { readonly id: unknown } {
  return typeof json === 'object' && json !== null && 'id' in json && 'evaluator' in json && 'instruction' in json
}

async function filesBelow(directory: string, depth: number): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  const below = await Promise.all(
    entries
      .filter((entry) => entry.isDirectory() && depth > 1 && !entry.name.startsWith('.'))
      .map((entry) => filesBelow(join(directory, entry.name), depth - 1)),
  )
  const own = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
  return [...own.map(({ name }) => join(directory, name)), ...below.flat()].toSorted()
}
