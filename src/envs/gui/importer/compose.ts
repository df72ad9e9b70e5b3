import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { z } from 'zod'
import { PaddockError, type Task } from '../../../core/index.ts'
import type { Environment } from '../../contract.ts'
import { refuserOf } from '../../refuse.ts'
import { formatIn, type Importer, type ImportOptions, type Place } from './contract.ts'
import { requireTrust } from './trust.ts'
import { readJson } from './set.ts'

/** Importers by name. */
type Formats = ReadonlyMap<string, Importer>

/**
 * The environment of our own apps together with formats of the field: one environment, whose tasks say in their data which
 * of these they belong to. What no format knows at a path is one of ours. A task that would have a program run on the host is
 * refused (`TASK_UNTRUSTED`) unless tasks are trusted.
 */
export function withImporters(own: Environment, formats: Formats, o: ImportOptions): Environment {
  const of = (task: Task): Environment => {
    const name = formatIn(task)
    const format = name === null ? undefined : formats.get(name)
    if (name !== null && format === undefined) throw unknownFormat(`The task ${task.name}`, name, formats)
    requireTrust(format?.hostProgram(task) ?? null, o)
    return format?.environment ?? own
  }
  return {
    ...own,
    task: z.union([own.task, ...[...formats.values()].map(({ environment }) => environment.task)]),
    load: async (path, options) => {
      const tasks = await readFormats(path, formats, own, { ...o, ...options })
      tasks?.forEach(of)
      return tasks ?? own.load(path, options)
    },
    box: (task) => of(task).box(task),
    verifierBox: (task) => of(task).verifierBox(task),
    setup: async (context) => of(context.task).setup(context),
    tools: (task) => of(task).tools(task),
    systemPrompt: (task) => of(task).systemPrompt(task),
    userPrompt: (task) => of(task).userPrompt(task),
    steps: (task) => of(task).steps(task),
    collect: async (context) => of(context.task).collect(context),
    verify: async (context) => of(context.task).verify(context),
    isReadOnly: (task) => of(task).isReadOnly(task),
    scripts: {
      oracle: (task) => of(task).scripts.oracle(task),
      solutions: (task) => of(task).scripts.solutions(task),
      nullAgent: own.scripts.nullAgent,
      cheats: (task) => of(task).scripts.cheats(task),
      distractors: (task) => of(task).scripts.distractors(task),
    },
  }
}

/** The tasks at a path where a format knows them; null where none does, or nothing is there. */
async function readFormats(path: string, formats: Formats, own: Environment, o: ImportOptions) {
  const place = await placeAt(resolve(path))
  if (place === null) return null
  const whole = await readOne(place, formats, o)
  if (whole !== null || place.kind === 'file') return whole
  const names = (await readdir(place.path)).filter((name) => name.endsWith('.json')).toSorted()
  const refuse = refuserOf(o)
  const all: Task[] = []
  for (const name of names) {
    try {
      const file = await placeAt(join(place.path, name))
      const tasks = file === null ? null : await readOne(file, formats, o)
      // Sets of our own apps may lie beside those of other formats.
      all.push(...(tasks ?? (await own.load(join(place.path, name), o))))
    } catch (error) {
      refuse(basename(name, '.json'), error)
    }
  }
  return names.length === 0 ? null : all.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

async function readOne(place: Place, formats: Formats, o: ImportOptions): Promise<readonly Task[] | null> {
  const named = formatIn({ data: place.json })
  if (named !== null && !formats.has(named)) {
    throw unknownFormat(place.path, named, formats)
  }
  for (const format of formats.values()) {
    if (named !== null && named !== format.name) continue
    const tasks = await format.read(place, o)
    if (tasks !== null) return tasks
  }
  return null
}

async function placeAt(path: string): Promise<Place | null> {
  const facts = await stat(path).catch(() => null)
  if (facts?.isDirectory() === true) return { path, kind: 'directory', json: undefined }
  if (facts?.isFile() !== true) return null
  return { path, kind: 'file', json: path.endsWith('.json') ? await readJson(path) : undefined }
}

function unknownFormat(where: string, format: string, formats: Formats): PaddockError {
  return new PaddockError('TASK_INVALID', `${where}: there is no format ${JSON.stringify(format)}`, {
    data: { file: where, place: 'format' },
    fix: `Use one of ${[...formats.keys()].join(', ')}, leave it out for a set of apps, or list its importer under gui.importers in paddock.config.ts.`,
  })
}
