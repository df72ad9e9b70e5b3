/** Hundreds of statements that want out of the copy: none gives a result, and nothing in the box changes. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { openTaskBox } from '../open-box.ts'
import { sqliteEngine } from './engines/sqlite.ts'
import { sql } from './index.ts'
import { residentIn } from './resident.ts'
import { askAll } from './runner.ts'

const { signal } = new AbortController()
const databasePath = sqliteEngine.database
const limits = { timeoutMs: 30_000, maxRows: 50, maxBytes: 10_000, memoryMb: 256 }

/** Forbidden wherever they stand. */
const never = [
  "ATTACH '/workspace/other.sqlite' AS o",
  `ATTACH DATABASE '${databasePath}' AS o`,
  "ATTACH 'file:/workspace/other.sqlite?mode=rwc' AS o",
  "ATTACH ':memory:' AS o",
  'DETACH main',
  'VACUUM',
  "VACUUM INTO '/workspace/out.sqlite'",
  "VACUUM main INTO '/tmp/out.sqlite'",
  'PRAGMA writable_schema = ON',
  'PRAGMA query_only = OFF',
  'PRAGMA journal_mode = WAL',
  "PRAGMA temp_store_directory = '/workspace'",
  'PRAGMA trusted_schema = ON',
  'PRAGMA main.database_list',
  'PRAGMA hard_heap_limit = 0',
  "CREATE VIRTUAL TABLE v USING fts5(body, content='/workspace/x')",
  'CREATE VIRTUAL TABLE temp.v USING dbstat(main)',
  "SELECT load_extension('/workspace/x.so')",
  "SELECT fts3_tokenizer('simple')",
  'SELECT * FROM pragma_database_list',
  "SELECT readfile('/etc/passwd')",
  "SELECT writefile('/workspace/out.sqlite', x'00')",
  "SELECT edit('x', 'sh')",
]

/** Forbidden to a query. */
const writing = [
  'DELETE FROM customers',
  'DELETE FROM sqlite_master',
  "UPDATE customers SET name = 'x'",
  'INSERT INTO categories VALUES (99, "x")',
  'REPLACE INTO categories VALUES (1, "x")',
  'DROP TABLE returns',
  'ALTER TABLE customers RENAME TO c',
  'CREATE TABLE t (a)',
  'CREATE TEMP TABLE t (a)',
  'CREATE TEMP TRIGGER t AFTER INSERT ON customers BEGIN SELECT 1; END',
  'CREATE VIEW v AS SELECT 1',
  'CREATE INDEX i ON customers(name)',
  'REINDEX',
  'ANALYZE',
  'BEGIN EXCLUSIVE',
  'SAVEPOINT s',
  'COMMIT',
]

const disguises: readonly ((statement: string) => string)[] = [
  (statement) => statement,
  (statement) => statement.toLowerCase(),
  (statement) => `/* SELECT 1; */ ${statement} -- SELECT 1`,
  (statement) => `--\n;;${statement};`,
  (statement) => `SELECT 1; ${statement}`,
  (statement) => statement.replaceAll(' ', '\t/**/\n'),
]

const disguised = (statements: readonly string[]) => statements.flatMap((one) => disguises.map((hide) => hide(one)))

describe.runIf(await requireDocker())('no statement leaves its copy', () => {
  let sandbox: SandboxProvider
  let box: Box
  beforeAll(async () => {
    sandbox = dockerProvider()
    const [task] = await sql.load(join(import.meta.dirname, '../../../examples/tasks/sql/shop.json'))
    if (task === undefined) throw new Error('no task')
    box = await openTaskBox(sandbox, sql.box(task), { labels: { role: 'probe' }, signal })
    // Another SQLite file within reach of the box's user, as a second rollout's would be.
    await box.exec({
      command:
        "python3 -c \"import sqlite3; sqlite3.connect('/workspace/other.sqlite').execute('CREATE TABLE gold (a)')\"",
    })
  })
  afterAll(() => sandbox.close())

  /** Names, sizes and digests of all that the user of the box may write, and of the database. */
  async function world(): Promise<string> {
    const command = `find / -xdev -type f \\( -user 1000 -o -newer ${databasePath} \\) 2>/dev/null | sort | xargs sha256sum; sha256sum ${databasePath}`
    return new TextDecoder().decode((await box.exec({ command, cwd: '/' })).stdout)
  }

  /** The statements that were run: by a program that ends with them, as verifiers do, or by the one that tools ask. */
  async function results(op: 'query' | 'script', statements: readonly string[]) {
    const requests = statements.map((statement) => ({ op, db: databasePath, sql: statement }))
    const o = { engine: sqliteEngine, limits, shown: 'escape', signal }
    const answers = await askAll<'query' | 'script'>(requests, box, o)
    const told = await Promise.all(requests.map((request) => residentIn(box, sqliteEngine).ask(request, o)))
    return statements.filter((_, i) => answers[i]?.status === 'ok' || told[i]?.status === 'ok')
  }

  test('queries', async () => {
    const before = await world()
    const statements = disguised([...never, ...writing])
    expect(statements.length).toBeGreaterThanOrEqual(200)
    // A statement behind `SELECT 1;` is refused because there are two; nothing of it runs.
    expect(await results('query', statements)).toEqual([])
    expect(await world()).toBe(before)
  })

  test('scripts, which may write to their own copy', async () => {
    const before = await world()
    expect(await results('script', disguised(never))).toEqual([])
    expect(await results('script', ['DELETE FROM returns'])).toEqual(['DELETE FROM returns'])
    expect(await world()).toBe(before)
  })
})
