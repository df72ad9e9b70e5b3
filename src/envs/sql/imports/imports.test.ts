import Database from 'better-sqlite3'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import { dockerProvider } from '../../../sandbox/index.ts'
import { requireDocker } from '../../../testing/sandbox/index.ts'
import { openTaskBox } from '../../open-box.ts'
import { sqlDataSchema } from '../data.ts'
import { verdictIn } from '../sql.fixture.ts'
import { sql } from '../index.ts'

let directory: string
beforeAll(async () => {
  directory = tempDir()
  const folder = join(directory, 'database', 'Flight_2')
  await mkdir(folder, { recursive: true })
  const db = new Database(join(folder, 'Flight_2.sqlite'))
  db.exec(
    "CREATE TABLE airlines (uid INTEGER, Airline TEXT, Country TEXT); INSERT INTO airlines VALUES (1, 'JetBlue Airways', 'USA'), (2, 'Alaska', 'USA'), (3, 'Alpine', 'CH')",
  )
  db.close()
  const file = join(folder, 'Flight_2.sqlite')
  const skyrl = join(directory, 'db_files/data/spider/database/Flight_2')
  await mkdir(skyrl, { recursive: true })
  await copyFile(file, join(skyrl, 'Flight_2.sqlite'))
  await writeSpider2(file)
})

const spider2 = tempDir()

/** The folder `spider2-lite/` in small: file names and rows as in xlang-ai/Spider2 at 0c85cc2. */
async function writeSpider2(database: string): Promise<void> {
  const gold = join(spider2, 'evaluation_suite/gold')
  for (const folder of [
    join(gold, 'exec_result'),
    ...['documents', 'databases/spider2-localdb'].map((one) => join(spider2, 'resource', one)),
  ])
    await mkdir(folder, { recursive: true })
  const rows = [
    { instance_id: 'local001', db: 'Flight_2', question: 'Which country?', external_knowledge: 'us.md' },
    { instance_id: 'bq011', db: 'ga4', question: 'How many?', external_knowledge: null },
  ]
  await writeFile(join(spider2, 'spider2-lite.jsonl'), rows.map((row) => JSON.stringify(row)).join('\n'))
  const standard = { instance_id: 'local001', condition_cols: [[1], []], ignore_order: false, toks: '12' }
  await writeFile(join(gold, 'spider2lite_eval.jsonl'), JSON.stringify(standard))
  await writeFile(join(gold, 'exec_result/local001_a.csv'), 'Airline,Country\nJetBlue Airways,USA\n')
  await writeFile(join(gold, 'exec_result/local001_b.csv'), 'Country,n,rest\r\n"USA, ""the"" states",1.5,\r\n')
  await writeFile(join(gold, 'exec_result/local0011.csv'), 'another,instance\n')
  await writeFile(join(spider2, 'resource/documents/us.md'), 'US means USA\n')
  await copyFile(database, join(spider2, 'resource/databases/spider2-localdb/Flight_2.sqlite'))
}

async function loadLines(name: string, rows: readonly object[]) {
  await writeFile(join(directory, name), rows.map((row) => JSON.stringify(row)).join('\n'))
  return sql.load(join(directory, name))
}

async function writeParquet(name: string, rows: readonly object[]) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const columnData = names.map((column) => {
    const data = rows.map((row): unknown => Reflect.get(row, column) ?? null)
    const plainText = data.every((value) => typeof value === 'string')
    return { name: column, data, type: plainText ? ('STRING' as const) : ('JSON' as const) }
  })
  await writeFile(join(directory, name), new Uint8Array(parquetWriteBuffer({ columnData })))
}

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

  test('NeMo Gym: JSON lines, compared as its verifier does', async () => {
    // Shape: NVIDIA-NeMo/Gym resources_servers/bird_sql/data/example.jsonl at 256caa1.
    const rows = [
      {
        responses_create_params: { input: [{ role: 'user', content: '### Question\nWhich country?' }] },
        question: 'Which country?',
        gt_sql: country,
        sql_context: 'CREATE TABLE airlines (uid INTEGER, Airline TEXT, Country TEXT)',
        difficulty: 'simple',
        db_id: 'Flight_2',
        id: 0,
      },
    ]
    const [task] = await loadLines('bird.jsonl', rows)
    expect(task).toMatchObject({ name: 'bird-0', instruction: 'Which country?' })
    expect(task?.data).toMatchObject({ golds: [country], semantics: { rows: 'set' }, difficulty: 'simple' })
  })

  test('SkyRL-SQL: Parquet, question and knowledge out of the prompt, the database by its source', async () => {
    // Shape: the script that wrote SkyRL-SQL-653-data, and skyrl-gym/skyrl_gym/envs/sql/env.py at 259f0b0.
    const content =
      '{db_details}:CREATE TABLE airlines (uid INTEGER);\n {external_knowledge}: US means USA;\n {question}: Which country?'
    await writeParquet('train.parquet', [
      {
        db_id: 'Flight_2',
        data: 'spider',
        prompt: [{ role: 'user', content }],
        reward_spec: { ground_truth: country },
      },
    ])
    const [task] = await sql.load(join(directory, 'train.parquet'))
    expect(task).toMatchObject({ split: 'train', instruction: 'Which country?\n\nKnow that: US means USA' })
    expect(task?.data).toMatchObject({
      database: { file: 'db_files/data/spider/database/Flight_2/Flight_2.sqlite' },
      golds: [country],
      semantics: { rows: 'set', columns: 'position' },
    })
    await writeParquet('bad.parquet', [{ db_id: 'Flight_2', data: 'mysql', prompt: [{ role: 'user', content }] }])
    await expect(sql.load(join(directory, 'bad.parquet'))).rejects.toMatchObject({
      code: 'TASK_INVALID',
      message: expect.stringContaining('row 0'),
    })
  })

  test('Spider2-Lite: the SQLite part, golds as CSV cut to the columns that count, knowledge from its documents', async () => {
    const [task, ...others] = await sql.load(join(spider2, 'spider2-lite.jsonl'))
    expect(others).toEqual([])
    expect(task).toMatchObject({
      name: 'local001',
      instruction: expect.stringMatching(/^Which country\?\n\nKnow that: US/),
    })
    expect(task?.data).toMatchObject({
      database: { file: 'resource/databases/spider2-localdb/Flight_2.sqlite' },
      golds: ["VALUES ('USA')", 'VALUES (\'USA, "the" states\', 1.5, NULL)'],
      semantics: { rows: 'ordered', columns: 'exists', nulls: 'as_zero' },
    })
    await writeFile(join(spider2, 'other.jsonl'), JSON.stringify({ instance_id: 'local009', db: 'x', question: 'y' }))
    await expect(sql.load(join(spider2, 'other.jsonl'))).rejects.toMatchObject({
      message: expect.stringContaining('local009 has no gold'),
    })
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
    const cheats = await sql.scripts.cheats(task)
    expect(cheats).toHaveLength(2)
    for (const { script } of cheats) {
      const [step] = script.steps
      const submission = step !== undefined && 'args' in step ? String(step.args['sql']) : ''
      expect((await verdictIn(box, task, submission)).reward).toBe(0)
    }
  })
})
