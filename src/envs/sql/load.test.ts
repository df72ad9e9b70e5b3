import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { sqlPresetNames, sqlPresets } from '../../reward/index.ts'
import { sqlDataSchema } from './data.ts'
import { sql } from './index.ts'

let directory: string
beforeAll(async () => {
  directory = tempDir()
  await writeFile(join(directory, 'make.py'), 'print("a generator")')
})

const task = { name: 'one', question: 'How many?', gold: 'SELECT count(*) FROM t' }
const set = { database: { name: 'small', script: 'make.py' }, tasks: [task] }

async function load(content: unknown) {
  const file = join(directory, 'set.json')
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return sql.load(file)
}

describe('task files', () => {
  test('get the strict preset, and parts set beside a preset win', async () => {
    const compare = { preset: 'spider2', columns: 'subset', nulls: 'distinct' }
    const [plain, own] = await load({ ...set, tasks: [task, { ...task, name: 'two', question: 'Which?', compare }] })
    expect(sqlDataSchema.parse(plain?.data).semantics).toMatchObject({ rows: 'by_gold', columns: 'position' })
    expect(sqlDataSchema.parse(own?.data).semantics).toMatchObject({
      columns: 'subset',
      nulls: 'distinct',
      numberTexts: 'as_numbers',
    })
  })

  test.each(sqlPresetNames)('carry all of the preset %s, and what switches a part of it off', async (preset) => {
    const off = { preset, distinct: 'kept', repairs: 'none' }
    const [all, less] = await load({
      ...set,
      tasks: [
        { ...task, compare: { preset } },
        { ...task, name: 'two', question: 'Which?', compare: off },
      ],
    })
    expect(sqlDataSchema.parse(all?.data).semantics).toEqual(sqlPresets[preset])
    const { distinct: _distinct, repairs: _repairs, ...rest } = sqlPresets[preset]
    expect(sqlDataSchema.parse(less?.data).semantics).toEqual(rest)
  })

  test('make another task when gold, semantics or the generator change, and not when a cheat does', async () => {
    const digest = async (content: object) => (await load(content))[0]?.digest
    const first = await digest(set)
    expect(await digest({ ...set, tasks: [{ ...task, cheats: [{ name: 'c', sql: 'SELECT 1' }] }] })).toBe(first)
    expect(await digest({ ...set, tasks: [{ ...task, gold: 'SELECT 2' }] })).not.toBe(first)
    expect(await digest({ ...set, tasks: [{ ...task, compare: { preset: 'bird-ex' } }] })).not.toBe(first)
    await writeFile(join(directory, 'make.py'), 'print("another")')
    expect(await digest(set)).not.toBe(first)
  })

  test.each([
    ['no JSON', '{', 'cannot be read as JSON'],
    ['an unknown key', { ...set, tasks: [{ ...task, golds: [] }] }, 'tasks.0'],
    ['an unknown preset', { ...set, tasks: [{ ...task, compare: { preset: 'bird' } }] }, 'tasks.0.compare.preset'],
    ['no gold', { ...set, tasks: [{ ...task, gold: [] }] }, 'tasks.0.gold'],
    ['condition columns by position', { ...set, tasks: [{ ...task, conditionColumns: [0] }] }, 'conditionColumns'],
    [
      'script and file',
      { ...set, database: { name: 'x', script: 'make.py', file: 'x.sqlite' } },
      'either script or file',
    ],
    ['an unknown engine', { ...set, database: { ...set.database, engine: 'mysql' } }, 'database.engine'],
    [
      'a finished file for PostgreSQL',
      { ...set, database: { name: 'x', engine: 'postgres', file: 'x.sql' } },
      'database.file: PostgreSQL takes a script',
    ],
    [
      'efficiency on an engine that counts nothing',
      { ...set, database: { ...set.database, engine: 'postgres' }, tasks: [{ ...task, efficiencyBy: 'steps' }] },
      'efficiencyBy',
    ],
    ['a database that is not there', { ...set, database: { name: 'x', file: 'x.sqlite' } }, 'x.sqlite'],
    ['two tasks of one name', { ...set, tasks: [task, { ...task, question: 'Other?' }] }, 'name'],
    ['two tasks of one question', { ...set, tasks: [task, { ...task, name: 'two' }] }, 'question'],
  ])('with %s are refused, with the place', async (_what, content, place) => {
    await expect(load(content)).rejects.toMatchObject({ code: 'TASK_INVALID', message: expect.stringContaining(place) })
  })

  test('are the only thing that a directory may be loaded for', async () => {
    await expect(sql.load(join(directory, 'nowhere'))).rejects.toMatchObject({ code: 'TASK_INVALID' })
  })

  test('of the examples: 56 tasks over seven databases of three engines, eleven of them writes, all with a cheat and a weak attempt', async () => {
    const tasks = await sql.load(join(import.meta.dirname, '../../../examples/tasks/sql'))
    const data = tasks.map((one) => sqlDataSchema.parse(one.data))
    expect(tasks).toHaveLength(56)
    expect(new Set(data.map((one) => one.database.name)).size).toBe(7)
    expect(new Set(data.map((one) => one.database.engine ?? 'sqlite'))).toEqual(
      new Set(['sqlite', 'duckdb', 'postgres']),
    )
    expect(data.filter((one) => one.mode === 'write')).toHaveLength(11)
    for (const one of tasks) {
      expect((await sql.scripts.cheats(one)).length).toBeGreaterThan(0)
      expect((await sql.scripts.distractors(one)).length).toBeGreaterThan(0)
    }
  })
})
