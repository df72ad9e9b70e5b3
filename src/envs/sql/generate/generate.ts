import { dice } from '../../dice.ts'
import type { GeneratorSeed } from '../../generate/index.ts'
import type { SqlData } from '../data.ts'
import { dataOf } from '../load.ts'
import { type SqlTaskEntry, taskFileSchema } from '../task-file.ts'
import { databaseScript } from './database.ts'
import { levels, type Question } from './questions.ts'
import { themes } from './themes.ts'

/** Seeds that share a database, and so an image: as many as each level has questions at least. */
const perDatabase = 50

/** Levels that there are. */
export const recordLevels = levels.length

/** A question about made-up records, as a task file would hold it. */
export function generateRecords({ seed, level }: GeneratorSeed): {
  readonly entry: SqlTaskEntry
  readonly instruction: string
  readonly data: SqlData
} {
  const world = Math.floor(seed / perDatabase)
  const theme = themes[world % themes.length]
  const all = theme === undefined ? [] : (levels[level - 1]?.(theme) ?? [])
  const asked = dice(world * levels.length + level).shuffled(all)[seed % perDatabase]
  if (theme === undefined || asked === undefined) throw new RangeError(`no question of seed ${seed} at level ${level}`)
  const name = `records-${theme.name}-${world}`
  const file = taskFileSchema.parse({
    database: { name, script: 'build.py' },
    neighbours: { subsets: 1, rebuilds: 2 },
    tasks: [entryOf(asked, level, theme.deed.table)],
  })
  const [entry] = file.tasks
  if (entry === undefined) throw new RangeError('a file has a task')
  const database = { kind: 'script', name, script: databaseScript(theme, world) } as const
  return { entry, instruction: asked.question, data: dataOf(entry, file, database) }
}

function entryOf({ question, gold, weak }: Question, level: number, deeds: string) {
  return {
    name: 'generated',
    question,
    gold,
    difficulty: `level ${level}`,
    weak: [{ name: 'overlooks-a-condition', sql: weak }],
    cheats: [
      { name: 'empties-the-table', sql: `DELETE FROM ${deeds}` },
      { name: 'hands-in-every-row', sql: `SELECT * FROM ${deeds}` },
    ],
  }
}
