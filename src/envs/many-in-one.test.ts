/** Files of many tasks of which some are bad: each is named with its place, and the others are there. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { builtInGui } from '../builtin/index.ts'
import type { Environment } from './contract.ts'
import { renameTask } from './gui/importers/osworld/osworld.fixture.ts'
import { row, whole } from './gui/importers/webarena/webarena.fixture.ts'
import { loadEach } from './load-each.ts'
import { searchEnvironment } from './search/index.ts'
import { sql } from './sql/index.ts'

const root = tempDir()

const gui = builtInGui({ trustTasks: false })
const one = { name: 'one', question: 'How many?', gold: 'SELECT 1' }
const lines = (...rows: readonly (object | string)[]): string =>
  rows.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`).join('')
const question = { id: 'a', question: 'Who?', golden_answers: ['x'], evidence: ['1'] }

interface Case {
  readonly environment: () => Environment
  /** What is loaded, of the files; default: the first of them. */
  readonly place?: string
  readonly files: Readonly<Record<string, string | object>>
  readonly good: readonly string[]
  readonly bad: readonly (readonly [string, RegExp])[]
}
const cases: Record<string, Case> = {
  'of SQL tasks over one database': {
    environment: () => sql,
    files: {
      'set.json': {
        database: { name: 'small', script: 'make.py' },
        tasks: [
          one,
          { ...one, name: 'two', question: 'Which?', gold: [] },
          { question: 'Nameless?', gold: 'SELECT 1' },
          { ...one, question: 'The same name?' },
          { ...one, name: 'three' },
          { ...one, name: 'four', question: 'What?', mode: 'write', efficiencyBy: 'time' },
          { ...one, name: 'five', question: 'Good?' },
        ],
      },
      'make.py': 'print("a generator")',
    },
    good: ['five', 'one'],
    bad: [
      ['two', /set\.json: tasks\.1\.gold/],
      ['set.json tasks.2', /set\.json: tasks\.2\.name/],
      ['four', /four: efficiencyBy/],
      ['one', /two tasks have the name of one/],
      ['three', /two tasks have the question of three/],
    ],
  },
  'of rows of Spider': {
    environment: () => sql,
    files: {
      'dev.json': [
        { db_id: 'a', question: 'One?', query: 'SELECT 1' },
        { db_id: 'a', question: 'No query?' },
        { db_id: 'gone', question: 'Two?', query: 'SELECT 2' },
        { db_id: 'a', question: 'Three?', query: 'SELECT 3' },
      ] as object,
      'database/a/a.sqlite': 'a file',
    },
    good: ['dev-0', 'dev-3'],
    bad: [
      ['dev-1', /dev\.json: row 1 is none of/],
      ['dev-2', /the database gone is not there/],
    ],
  },
  'of goals of an app': {
    environment: () => gui,
    files: { 'shop.json': { app: 'notes', goals: ['pin', 'fly', 'swim'], seeds: [1, 2] } },
    good: ['notes-pin-1', 'notes-pin-2'],
    bad: [
      ['notes-fly', /shop\.json: notes has no goal fly/],
      ['notes-swim', /no goal swim/],
    ],
  },
  'of gui tasks beside others, of other formats too': {
    environment: () => gui,
    place: '.',
    files: {
      'a.json': '{',
      'b.json': { app: 'notes', goals: ['pin'], seeds: [1] },
      'c.json': { app: 'nowhere', goals: ['pin'], seeds: [1] },
      'd.json': { format: 'paper', tasks: [] },
      'e.json': [
        row(
          3,
          { eval_types: ['url_match'], reference_url: 'http://127.0.0.1:1/' },
          { start_url: 'http://127.0.0.1:1/' },
        ),
      ],
    },
    good: ['notes-pin-1', 'webarena-3'],
    bad: [
      ['a', /a\.json: cannot be read as JSON/],
      ['c', /c\.json: there is no app nowhere/],
      ['d', /d\.json: there is no format "paper"/],
    ],
  },
  'of a folder of OSWorld': {
    environment: () => gui,
    place: '.',
    files: {
      'os/a.json': '{',
      [`os/${renameTask.id}.json`]: renameTask,
      'os/z.json': { ...renameTask, id: 'z', evaluator: {} },
    },
    good: [renameTask.id],
    bad: [
      ['a', /os\/a\.json: cannot be read as JSON/],
      ['z', /os\/z\.json: evaluator/],
    ],
  },
  'of rows of WebArena': {
    environment: () => gui,
    files: {
      'set.json': { format: 'webarena', tasks: 'rows.json', sites: { SHOPPING: 'http://127.0.0.1:1' } },
      'rows.json': [
        whole,
        { ...whole, task_id: 8, start_url: '__ELSEWHERE__' },
        { ...whole, task_id: 9, start_url: 'nowhere' },
        { intent: 'Nothing else.' },
      ] as object,
    },
    good: ['webarena-7'],
    bad: [
      ['webarena-8', /rows\.json: row 1: __ELSEWHERE__/],
      ['webarena-9', /rows\.json: row 2: start_url: nowhere is no address/],
      ['rows.json row 3', /rows\.json: row 3/],
    ],
  },
  'of questions': {
    environment: () => searchEnvironment({ directory: join(root, 'cache') }),
    files: {
      'questions.jsonl': lines(
        question,
        '{',
        { id: 'b', question: 'q' },
        { ...question, id: 'c', evidence: ['9'] },
        question,
        {
          ...question,
          id: 'd',
        },
      ),
      'search.toml': '[corpus]\nkind = "jsonl"\npath = "passages.jsonl"\n',
      'passages.jsonl': lines({ id: '1', contents: '"Title"\nText.' }),
    },
    good: ['a', 'd'],
    bad: [
      ['questions.jsonl:2', /questions\.jsonl:2: is not JSON/],
      ['b', /questions\.jsonl:3/],
      ['c', /questions\.jsonl:4: the corpus has no passage 9/],
      ['a', /questions\.jsonl:5: there are two questions a/],
    ],
  },
}

it.each(Object.entries(cases))('a file %s', async (name, { environment, files, good, bad, ...o }) => {
  const folder = join(root, name.replaceAll(' ', '-'))
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const place = join(folder, o.place ?? Object.keys(files)[0] ?? '')
  const { signal } = new AbortController()
  const { tasks, refused } = await loadEach(environment(), place, { signal })
  expect(tasks.map((task) => task.name)).toEqual(good)
  expect(refused.map((task) => [task.name, task.error.message])).toEqual(
    bad.map(([task, message]) => [task, expect.stringMatching(message)]),
  )
  expect(refused.every(({ error }) => error.code === 'TASK_INVALID')).toBe(true)
  // The same without anybody to tell: the first of them is the error of the whole.
  await expect(environment().load(place)).rejects.toMatchObject({ code: 'TASK_INVALID' })
  expect((await loadEach(environment(), place, { signal, only: good.slice(0, 1) })).tasks).toHaveLength(1)
})
