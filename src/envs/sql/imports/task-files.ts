import type { SqlTaskFile } from '../task-file.ts'

type Entry = SqlTaskFile['tasks'][number]

/** A question of a data set of the field, whatever its file. */
export interface ImportedQuestion {
  readonly name: string
  readonly split: string
  /** `file` relative to the file of questions. */
  readonly database: { readonly name: string; readonly file: string }
  readonly question: string
  /** Empty: none. */
  readonly evidence: string
  readonly golds: readonly string[]
  readonly compare: Entry['compare']
  readonly difficulty: string | null
}

/** What an imported task is checked against: no row at all, and a change of the schema by hand. */
const cheats = [
  { name: 'no-rows', sql: 'SELECT NULL WHERE 0' },
  { name: 'empties-the-schema', sql: 'DELETE FROM sqlite_master' },
]

/** Questions as task files, one per database. A question that stands there twice is one task, and each gold is right. */
export function taskFiles(questions: readonly ImportedQuestion[]): readonly SqlTaskFile[] {
  return [...Map.groupBy(questions, ({ database }) => database.file).values()].flatMap((own) => {
    const [first] = own
    if (first === undefined) return []
    const tasks = [...Map.groupBy(own, (one) => JSON.stringify([one.question, one.evidence])).values()].map(entryOf)
    return [
      {
        database: { ...first.database, engine: 'sqlite' as const },
        neighbours: { subsets: 0, rebuilds: 0 },
        limits: { executeMs: 5000, verifyMs: 30_000 },
        tasks: tasks.flat(),
      },
    ]
  })
}

function entryOf(same: readonly ImportedQuestion[]): readonly Entry[] {
  const [first] = same
  if (first === undefined) return []
  const { name, question, evidence, compare, difficulty, split } = first
  return [
    {
      name,
      question,
      ...(evidence === '' ? {} : { evidence }),
      mode: 'query',
      gold: [...new Set(same.flatMap(({ golds }) => golds))],
      compare,
      probes: [],
      ignoreColumns: [],
      efficiencyWeight: 0,
      ...(difficulty === null ? {} : { difficulty }),
      split,
      cheats,
      weak: [],
    },
  ]
}

/** A name as tasks and images may have it. */
export function plain(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}
