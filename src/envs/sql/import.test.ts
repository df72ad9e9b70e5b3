import Database from 'better-sqlite3'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dockerProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { openTaskBox } from '../open-box.ts'
import { sqlDataSchema } from './data.ts'
import { verdictIn } from './sql.fixture.ts'
import { sql } from './index.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-sql-import-'))
  const folder = join(directory, 'database', 'Flight_2')
  await mkdir(folder, { recursive: true })
  const db = new Database(join(folder, 'Flight_2.sqlite'))
  db.exec(
    "CREATE TABLE airlines (uid INTEGER, Airline TEXT, Country TEXT); INSERT INTO airlines VALUES (1, 'JetBlue Airways', 'USA'), (2, 'Alaska', 'USA'), (3, 'Alpine', 'CH')",
  )
  db.close()
})
afterAll(() => rm(directory, { recursive: true }))

async function load(name: string, rows: readonly object[]) {
  await writeFile(join(directory, name), JSON.stringify(rows))
  return sql.load(join(directory, name))
}

const country = 'SELECT Country FROM airlines WHERE Airline = "JetBlue Airways"'
const spider = [
  { db_id: 'Flight_2', question: 'Which country?', query: country, query_toks: [], sql: {} },
  { db_id: 'Flight_2', question: 'How many?', query: 'SELECT count(*) FROM airlines' },
  { db_id: 'Flight_2', question: 'How many?', query: 'SELECT count(uid) FROM airlines' },
]

describe('question files of the field', () => {
  test('Spider: its preset, its database, and one task for a question that stands there twice', async () => {
    const tasks = await load('train_spider.json', spider)
    expect(tasks.map(({ name, split }) => [name, split])).toEqual([
      ['train-spider-0', 'train'],
      ['train-spider-1', 'train'],
    ])
    const data = sqlDataSchema.parse(tasks[1]?.data)
    expect(data.golds).toEqual(['SELECT count(*) FROM airlines', 'SELECT count(uid) FROM airlines'])
    expect(data).toMatchObject({
      database: { kind: 'file', name: 'flight-2', file: 'database/Flight_2/Flight_2.sqlite' },
      semantics: { rows: 'by_gold_text', columns: 'permutation' },
      neighbours: { subsets: 0, rebuilds: 0 },
    })
  })

  test('BIRD: evidence stands with the question, difficulty is kept', async () => {
    const [task] = await load('dev.json', [
      {
        question_id: 7,
        db_id: 'Flight_2',
        question: 'Which?',
        evidence: 'US means USA',
        SQL: country,
        difficulty: 'simple',
      },
    ])
    expect(task).toMatchObject({ name: 'dev-0', split: 'dev', instruction: 'Which?\n\nKnow that: US means USA' })
    expect(task?.data).toMatchObject({ difficulty: 'simple', semantics: { rows: 'set', columns: 'position' } })
  })

  test.each([
    ['a row of neither', [{ db_id: 'Flight_2', question: 'Which?' }], /row 0/],
    ['a database that is not there', [{ ...spider[0], db_id: 'nowhere' }], /the database nowhere/],
    ['no rows', [], /row/],
  ])('%s is refused', async (_what, rows, place) => {
    await expect(load('bad.json', rows)).rejects.toMatchObject({
      code: 'TASK_INVALID',
      message: expect.stringMatching(place),
    })
  })
})

describe.runIf(await requireDocker())('an imported task', () => {
  test('runs golds with double-quoted literals on the file, and its cheats score 0', async () => {
    await using sandbox = dockerProvider()
    const [task] = await load('train_spider.json', spider)
    if (task === undefined) throw new Error('no task')
    const { signal } = new AbortController()
    await using box = await openTaskBox(sandbox, sql.box(task), { labels: { role: 'probe' }, signal })
    expect(await verdictIn(box, task, country)).toMatchObject({ status: 'scored', reward: 1 })
    expect(await verdictIn(box, task, "SELECT Country FROM airlines WHERE Airline = 'Alpine'")).toMatchObject({
      reward: 0,
    })
    const cheats = await sql.plays.cheats(task)
    expect(cheats).toHaveLength(2)
    for (const { play } of cheats) {
      const [step] = play.steps
      const submission = step !== undefined && 'args' in step ? String(step.args['sql']) : ''
      expect((await verdictIn(box, task, submission)).reward).toBe(0)
    }
  })
})
