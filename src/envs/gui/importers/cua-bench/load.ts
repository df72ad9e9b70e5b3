import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { gui, makeTask, PaddockError, sha256, type Task } from '../../../../kits/environment.ts'
import { type CuaBenchData, cuaBenchSetSchema } from './data.ts'
import { CuaModule } from './module.ts'
import { sessionMembers } from './program.ts'

const fix = 'A set is {"format": "cua-bench", "directory": "<folder of tasks>"}, with tasks, assets where wanted.'

/** A folder of a cua-bench task, a folder of such folders, or the JSON file of a set. Null for anything else. */
export async function readCuaBench(
  { path, kind, json }: gui.Place,
  o: gui.ImportOptions,
): Promise<readonly Task[] | null> {
  if (kind === 'directory') {
    const modules = await modulesBelow(path)
    if (modules.length === 0) return null
    return tasksOf(modules, gui.fitted(cuaBenchSetSchema, { format: 'cua-bench', directory: path }, path, fix), path, o)
  }
  if (typeof json !== 'object' || json === null || !('format' in json) || json.format !== 'cua-bench') return null
  const set = gui.fitted(cuaBenchSetSchema, json, path, fix)
  const modules = await modulesBelow(resolve(dirname(path), set.directory))
  const chosen = set.tasks ?? modules.map(nameOf)
  const unknown = chosen.find((name) => !modules.some((one) => nameOf(one) === name))
  if (unknown !== undefined)
    throw gui.invalid(path, 'tasks', `there is no task ${unknown}`, `There are ${modules.map(nameOf).join(', ')}.`)
  if (chosen.length === 0) throw gui.invalid(path, 'directory', `${set.directory} holds no main.py of cua-bench`, fix)
  return tasksOf(
    modules.filter((one) => chosen.includes(nameOf(one))),
    set,
    path,
    o,
  )
}

async function tasksOf(
  modules: readonly string[],
  set: ReturnType<typeof cuaBenchSetSchema.parse>,
  file: string,
  o: gui.ImportOptions,
): Promise<readonly Task[]> {
  const imported = new gui.Imported(o)
  for (const path of modules) {
    gui.requireTrust(path, o)
    await imported.take(nameOf(path), () => variantsOf(path, set, file))
  }
  return imported.tasks(file, set)
}

async function variantsOf(
  path: string,
  set: ReturnType<typeof cuaBenchSetSchema.parse>,
  file: string,
): Promise<readonly Task[]> {
  await using module = await CuaModule.open(path)
  const digest = sha256(await readFile(path, 'utf8'))
  return module.variants.map(({ split, index, solves, judges, lacks, description }) => {
    if (!judges)
      throw gui.invalid(
        path,
        'evaluate_task',
        `there is none for the split ${split}`,
        'Give the module an @evaluate_task.',
      )
    const [missing] = lacks
    if (missing !== undefined)
      throw new PaddockError('TASK_UNSUPPORTED', `${path}: it uses session.${missing}, which is not here`, {
        data: { file: path, lacks: lacks.join(', ') },
        fix: `Modules that use only ${sessionMembers.join(', ')} can be run.`,
      })
    const name = `${nameOf(path)}-${split === 'train' ? '' : `${split}-`}${index}`
    const { image, schema, maxActions, oracles } = set
    const data: CuaBenchData = {
      format: 'cua-bench',
      module: nameOf(path),
      index,
      split,
      sha256: digest,
      solves,
      assets: set.assets === null ? null : relative(dirname(path), resolve(dirname(file), set.assets)),
      screen: set.screen ?? { width: 1024, height: 768 },
      tier: 'browser',
      image,
      schema,
      maxActions,
      oracle: oracles[name] ?? null,
    }
    return makeTask({ name, environment: 'gui', instruction: description, split, data, source: path })
  })
}

/** The modules in a folder and in those directly below it. */
async function modulesBelow(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch(() => [])
  const candidates = [
    join(directory, 'main.py'),
    ...names.toSorted((a, b) => (a < b ? -1 : 1)).map((name) => join(directory, name, 'main.py')),
  ]
  const found = await Promise.all(candidates.map(async (path) => ((await isModule(path)) ? [path] : [])))
  return found.flat()
}

async function isModule(path: string): Promise<boolean> {
  if ((await stat(path).catch(() => null))?.isFile() !== true) return false
  return /\bcua_bench\b/.test(await readFile(path, 'utf8'))
}

function nameOf(module: string): string {
  return basename(dirname(module))
}
