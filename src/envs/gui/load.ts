import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { adapterOf } from './adapters/index.ts'
import type { LoadOptions } from '../contract.ts'
import { type Refuse, refuserOf } from '../refuse.ts'
import type { App, Plan } from './application/index.ts'
import { screenBeside } from './desktop/index.ts'
import { type GuiData, guiDataSchema } from './data.ts'
import { pictureScale } from './tools/index.ts'

/** A file of a set: goals of one app, each on every seed. */
const fileShape = guiDataSchema.omit({ goal: true, seed: true }).extend({
  goals: z.array(z.string()).min(1),
  seeds: z.array(z.int().min(0)).min(1),
  split: z.string().default('train'),
})

/**
 * Reads tasks of apps: a `.json` file `{"app", "goals", "seeds"}`, a folder of them, or one task of a file as
 * `<file without .json>/<goal>-<seed>`. Throws `TASK_INVALID` with file, place and fix for the first that cannot be used, where
 * nobody is told of each; a file of which nothing can is told by its name, a goal by app and goal.
 */
export async function loadGuiTasks(
  path: string,
  apps: ReadonlyMap<string, App>,
  o: LoadOptions = {},
): Promise<readonly Task[]> {
  const refuse = refuserOf(o)
  let refused = 0
  const leaveOut = (name: string, error: unknown): void => {
    refuse(name, error)
    refused += 1
  }
  const found = await findFiles(path)
  const tasks: Task[] = []
  for (const file of found.files) {
    try {
      tasks.push(...(await readTasks(file, apps, leaveOut)))
    } catch (error) {
      leaveOut(basename(file, '.json'), error)
    }
  }
  const chosen = found.only === null ? tasks : tasks.filter(({ name }) => name === found.only)
  if (chosen.length + refused > 0) return chosen
  throw invalid(path, '', found.only === null ? 'there are no .json files' : `there is no task ${found.only}`)
}

async function findFiles(path: string): Promise<{ readonly files: readonly string[]; readonly only: string | null }> {
  const facts = await stat(path).catch(() => null)
  if (facts?.isFile() === true) return { files: [path], only: null }
  if (facts?.isDirectory() === true) {
    const names = (await readdir(path)).filter((name) => name.endsWith('.json'))
    return { files: names.toSorted().map((name) => join(path, name)), only: null }
  }
  const file = `${dirname(path)}.json`
  const inFile = await stat(file).catch(() => null)
  if (inFile?.isFile() === true) return { files: [file], only: `${basename(dirname(path))}-${basename(path)}` }
  throw invalid(path, '', 'does not exist')
}

async function readTasks(file: string, apps: ReadonlyMap<string, App>, refuse: Refuse): Promise<readonly Task[]> {
  let json: unknown
  try {
    json = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw invalid(file, '', `it is not JSON: ${String(cause)}`, cause)
  }
  const parsed = fileShape.safeParse(json)
  if (!parsed.success) {
    throw invalid(file, parsed.error.issues[0]?.path.join('.') ?? '', z.prettifyError(parsed.error))
  }
  const { goals, seeds, split, ...data } = parsed.data
  const app = apps.get(data.app)
  if (app === undefined) {
    throw invalid(
      file,
      'app',
      `there is no app ${data.app}; use one of ${[...apps.keys()].join(', ')}, or list yours under gui.apps in paddock.config.ts`,
    )
  }
  const adapter = adapterOf(data.schema)
  if (adapter !== null && data.tier === 'desktop' && pictureScale(adapter, data.screen) !== 1) {
    throw invalid(
      file,
      'screen',
      `${adapter.name} shows a smaller picture; on a desktop take a screen that it shows as it is`,
    )
  }
  if (app.beside !== null) {
    const { width, height } = screenBeside
    if (data.tier !== 'desktop' || data.screen.width !== width || data.screen.height !== height) {
      throw invalid(
        file,
        'tier',
        `${data.app} is used beside a program: use tier "desktop" and a screen of ${width}x${height}`,
      )
    }
  }
  if (data.tier === 'desktop' && app.pointsAtPixels) {
    throw invalid(file, 'tier', `the scripts of ${data.app} point at pixels of a tab: use tier "browser"`)
  }
  if (data.tier === 'desktop' && (data.image.format !== 'png' || data.image.scale !== 1)) {
    throw invalid(file, 'image', 'a desktop gives its pictures as PNG, pixel by pixel: leave image out')
  }
  const known = goals.filter((goal) => {
    if (app.goals.includes(goal)) return true
    const what = `${data.app} has no goal ${goal}; use some of ${app.goals.join(', ')}`
    refuse(`${app.name}-${goal}`, invalid(file, 'goals', what))
    return false
  })
  return known.flatMap((goal) => seeds.map((seed) => taskOf(app, { ...data, goal, seed }, split, file)))
}

function taskOf(app: App, data: GuiData, split: string, source: string): Task {
  const { goal, seed } = data
  const { instruction } = app.plan(goal, seed)
  return makeTask({ name: `${app.name}-${goal}-${seed}`, environment: 'gui', instruction, split, data, source })
}

/** What a task asks for. Throws `TASK_INVALID` for an app or goal that does not exist. */
export function planOf(
  apps: ReadonlyMap<string, App>,
  { app, goal, seed }: Pick<GuiData, 'app' | 'goal' | 'seed'>,
): Plan {
  const found = apps.get(app)
  if (found === undefined || !found.goals.includes(goal)) {
    throw new PaddockError('TASK_INVALID', `There is no goal ${goal} of an app ${app}`, { data: { app, goal } })
  }
  return found.plan(goal, seed)
}

function invalid(file: string, place: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, {
    data: { file, place },
    fix: 'A set of gui tasks is a .json file with app, goals and seeds, or a folder of such files.',
    ...(cause === undefined ? {} : { cause }),
  })
}
