/** PostgreSQL and DuckDB: what holds for SQLite holds for them, each in one box as agent and verifier. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../core/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import type { NamedScript } from '../contract.ts'
import { openTaskBox } from '../open-box.ts'
import { runToolCall } from '../tool.ts'
import { sqlDataSchema } from './data.ts'
import { engineOf } from './engines/index.ts'
import { sql } from './index.ts'
import { askAll } from './runner.ts'
import { verdictIn } from './sql.fixture.ts'

const { signal } = new AbortController()
const folder = join(import.meta.dirname, '../../../examples/tasks/sql')

const alone = { neighbours: { subsets: 0, rebuilds: 0 } }

interface Case {
  readonly engine: string
  readonly set: string
  /** A right query task, and two spellings of its answer. */
  readonly query: string
  readonly rewritten: string
  readonly write: string
  /** Foreign keys: a column that points to another. */
  readonly keys: readonly (readonly [child: string, key: string, parent: string, id: string])[]
  /** What a query may not be, and what a script may not do. */
  readonly forbidden: readonly string[]
  readonly leaving: readonly string[]
  readonly endless: string
  readonly typed: readonly [sql: string, row: string]
  /** A table that no other points to, and scripts that make another of its name, or hide one, without emptying it. */
  readonly leaf: string
  readonly shadows: readonly string[]
  /** Scripts that add what acts on its own or is called. */
  readonly acting: readonly string[]
}

const cases: readonly Case[] = [
  {
    engine: 'PostgreSQL',
    set: 'harbor.json',
    query: 'harbor-tonnes-by-quay',
    rewritten:
      '-- by quay\nSELECT quay, (SELECT sum(tonnes) FROM load JOIN port_call ON id = call_id JOIN berth i ON i.code = berth WHERE i.quay = o.quay) FROM (SELECT DISTINCT quay FROM berth) o ORDER BY 1;',
    write: 'harbor-close-calls',
    keys: [
      ['port_call', 'imo', 'ship', 'imo'],
      ['load', 'call_id', 'port_call', 'id'],
    ],
    forbidden: [
      'DELETE FROM load',
      'WITH gone AS (DELETE FROM load RETURNING 1) SELECT count(*) FROM gone',
      'SELECT * INTO stolen FROM ship',
      'CREATE TEMP TABLE ship (imo int)',
      "SELECT pg_read_file('/etc/passwd')",
      "SELECT * FROM pg_ls_dir('/')",
      "COPY ship TO '/tmp/stolen'",
      "COPY (SELECT 1) TO PROGRAM 'id'",
      'SET ROLE author',
      'SELECT lo_create(0)',
      'SELECT pg_terminate_backend(pg_backend_pid())',
      'SELECT rolpassword FROM pg_authid',
      "SELECT current_setting('data_directory')",
    ],
    leaving: [
      'DROP DATABASE task',
      'CREATE ROLE thief SUPERUSER',
      "COPY ship FROM PROGRAM 'id'",
      'ALTER SYSTEM SET fsync = on',
      'CREATE EXTENSION file_fdw',
      "SELECT lo_import('/etc/passwd')",
      'SET SESSION AUTHORIZATION paddock',
    ],
    endless: 'SELECT count(*) FROM ship a, ship b, ship c, ship d, ship e, ship f, ship g, ship h',
    typed: [
      "SELECT 1, 1.5::numeric, 0.1::float8, 'it''s', '\\x00ff'::bytea, NULL, 170141183460469231731687303715884105727, true, DATE '2025-02-01', ARRAY[1, 2]",
      "1 | 1.5 | 0.1 | 'it''s' | x'00ff' | NULL | 170141183460469231731687303715884105727 | 'true' | '2025-02-01' | '{1,2}'",
    ],
    leaf: 'load',
    shadows: ['CREATE TEMP TABLE load AS SELECT * FROM load LIMIT 0'],
    acting: [
      'CREATE FUNCTION twice(a int) RETURNS int LANGUAGE sql AS $$ SELECT a * 2 $$',
      'CREATE FUNCTION kept_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; CREATE TRIGGER t BEFORE DELETE ON load FOR EACH ROW EXECUTE FUNCTION kept_row()',
      'CREATE TRIGGER u BEFORE UPDATE ON load FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
      'CREATE RULE kept AS ON DELETE TO load DO INSTEAD NOTHING',
      'CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int, INITCOND = 0)',
      'CREATE PROCEDURE tidy() LANGUAGE sql AS $$ DELETE FROM load WHERE false $$',
      'CREATE VIEW few AS SELECT 1 AS one',
    ],
  },
  {
    engine: 'DuckDB',
    set: 'orchard.json',
    query: 'orchard-idle-growers',
    rewritten: '-- idle\nSELECT id, name FROM growers WHERE id NOT IN (SELECT grower_id FROM deliveries) ORDER BY ALL;',
    write: 'orchard-set-missing-prices',
    keys: [
      ['deliveries', 'grower_id', 'growers', 'id'],
      ['deliveries', 'sort_id', 'sorts', 'id'],
    ],
    forbidden: [
      'DELETE FROM complaints',
      'CREATE TABLE stolen AS FROM growers',
      'CREATE TEMP TABLE growers (id INTEGER)',
      "COPY growers TO '/tmp/stolen.csv'",
      "ATTACH ':memory:' AS other",
      "SELECT * FROM read_csv('/etc/passwd')",
      "SELECT * FROM read_text('/etc/passwd')",
      "SELECT * FROM glob('/*')",
      'SET enable_external_access = true',
      'INSTALL httpfs',
      "LOAD 'x'",
      'CALL pragma_version()',
    ],
    leaving: [
      "ATTACH '/tmp/other.duckdb' AS o",
      "EXPORT DATABASE '/tmp/stolen'",
      "COPY growers TO '/tmp/stolen.csv'",
      "CREATE TABLE t AS SELECT * FROM read_text('/etc/passwd')",
      'SET enable_external_access = true',
    ],
    endless: 'SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE hash(a.range, b.range) = 1',
    typed: [
      "SELECT 1, 1.5, 0.1::DOUBLE, 'it''s', '\\x00\\xff'::BLOB, NULL, 170141183460469231731687303715884105727::HUGEINT, 123456789012345678901234567890123456::DECIMAL(38, 2), true, DATE '2025-02-01', TIMESTAMP '2025-02-01 01:02:03.5'",
      "1 | 1.5 | 0.1 | 'it''s' | x'00ff' | NULL | 170141183460469231731687303715884105727 | 123456789012345678901234567890123456 | 'true' | '2025-02-01' | '2025-02-01 01:02:03.5'",
    ],
    leaf: 'complaints',
    shadows: [
      'CREATE TEMP TABLE complaints AS SELECT * FROM complaints LIMIT 0',
      "DELETE FROM complaints; CREATE TABLE mark (a INT); CREATE MACRO duckdb_tables() AS TABLE SELECT * FROM system.main.duckdb_tables() WHERE table_name <> 'mark'",
    ],
    acting: [
      'CREATE MACRO twice(a) AS a * 2',
      'CREATE MACRO few() AS TABLE SELECT * FROM complaints LIMIT 3',
      'CREATE SCHEMA other; CREATE MACRO other.twice(a, b := 2) AS a * b',
      'CREATE VIEW single AS SELECT 1 AS one',
    ],
  },
]

describe.runIf(await requireDocker()).each(cases)('$engine', (given) => {
  let sandbox: SandboxProvider
  let box: Box
  let tasks: readonly Task[]
  beforeAll(async () => {
    sandbox = dockerProvider()
    tasks = await sql.load(join(folder, given.set))
    box = await openTaskBox(sandbox, sql.box(taskOf(given.query)), { labels: { role: 'probe' }, signal })
    await sql.setup({ task: taskOf(given.query), attempt: { id: 'attempt' }, box, signal, emit: () => undefined })
  }, 500_000)
  afterAll(() => sandbox.close())

  /** Alone: without its neighbours, which one test here needs. */
  function taskOf(name: string, changes: object = alone): Task {
    const task = tasks.find((one) => one.name === name)
    if (task === undefined) throw new Error(`no task ${name}`)
    return { ...task, data: { ...sqlDataSchema.parse(task.data), ...changes } }
  }
  const submissionOf = ({ script }: NamedScript): string => {
    const step = script.steps.find((one) => 'tool' in one && one.tool === 'submit_sql')
    return step !== undefined && 'args' in step ? String(step.args['sql']) : ''
  }
  const call = (name: string, args: object, task = taskOf(given.query)) =>
    runToolCall(
      sql.tools(task),
      { name, argumentsText: JSON.stringify(args) },
      { task, attempt: { id: 'attempt' }, box, signal },
    )

  /** The statements that the guard denied, or that could not be said at all. */
  async function refused(op: 'query' | 'script', statements: readonly string[]) {
    const engine = engineOf(sqlDataSchema.parse(taskOf(given.query).data).database)
    const requests = statements.map((statement) => ({ op, db: engine.database, sql: statement }))
    const limits = { timeoutMs: 10_000, maxRows: 50, maxBytes: 10_000, memoryMb: 256 }
    const o = { engine, limits, shown: 'escape', signal }
    const answers = await askAll<'query' | 'script'>(requests, box, o)
    return statements.filter((_, i) => {
      const answer = answers[i]
      return answer?.status === 'error' && answer.kind === 'refused'
    })
  }

  test('the gold of a write scores 1 and what an honest agent gets wrong does not', async () => {
    const task = taskOf(given.write)
    expect(await verdictIn(box, task, submissionOf(await sql.scripts.oracle(task)))).toMatchObject({
      status: 'scored',
      reward: 1,
    })
    for (const weak of await sql.scripts.distractors(task)) {
      expect((await verdictIn(box, task, submissionOf(weak))).reward).toBeLessThan(1)
    }
  })

  test('what stands in front of a table, or hides one, is not what the database holds', async () => {
    const task = taskOf(given.write, { ...alone, golds: [`DELETE FROM ${given.leaf}`], probes: [] })
    expect(await verdictIn(box, task, `DELETE FROM ${given.leaf} WHERE true`)).toMatchObject({ reward: 1 })
    for (const script of given.shadows) expect(await verdictIn(box, task, script)).toMatchObject({ reward: 0 })
  })

  test('what a script adds that acts on its own or is called is what the database holds', async () => {
    const right = submissionOf(await sql.scripts.oracle(taskOf(given.write)))
    for (const more of given.acting) {
      const verdict = await verdictIn(box, taskOf(given.write), `${right}; ${more}`)
      expect(verdict, more).toMatchObject({
        status: 'scored',
        reward: 0,
        evidence: expect.stringMatching(/differ|should not exist/),
      })
    }
    const all = given.acting.join('; ')
    const asked = taskOf(given.write, { ...alone, golds: [`${right}; ${all}`] })
    expect(await verdictIn(box, asked, `${all}; ${right}`)).toMatchObject({ status: 'scored', reward: 1 })
  })

  test('neighbours tell a right query from one that knows the answer by heart', async () => {
    const task = taskOf(given.query, {})
    expect(await verdictIn(box, task, given.rewritten)).toMatchObject({ status: 'scored', reward: 1 })
    const [learned] = await sql.scripts.cheats(task)
    if (learned === undefined) throw new Error('no cheat')
    const verdict = await verdictIn(box, task, submissionOf(learned))
    expect(verdict).toMatchObject({ status: 'scored', reward: 0, components: { result: 1 } })
  })

  test('subsets leave rows out and keep every key, the same ones each time', async () => {
    const engine = engineOf(sqlDataSchema.parse(taskOf(given.query).data).database)
    const o = {
      engine,
      limits: { timeoutMs: 30_000, maxRows: 1000, maxBytes: 1 << 20, memoryMb: 512 },
      shown: 'subset',
      signal,
    }
    const made = ['one', 'two'].map((_, i) => engine.neighbour('subset', 7 + i))
    const subset = made.map((out) => ({ op: 'subset' as const, db: engine.database, out, seed: 3, fraction: 0.4 }))
    expect(await askAll(subset, box, o)).toEqual(subset.map(() => ({ status: 'ok' })))
    const [all, ...less] = await askAll(
      [engine.database, ...made].map((db) => ({ op: 'tables' as const, db })),
      box,
      o,
    )
    if (all?.status !== 'ok') throw new Error('no tables')
    expect(less[0]).toEqual(less[1])
    for (const table of all.tables.filter(({ kind, rows }) => kind === 'table' && rows > 20)) {
      const left = less[0]?.status === 'ok' ? less[0].tables.find(({ name }) => name === table.name)?.rows : undefined
      expect(left).toBeLessThan(table.rows)
    }
    const orphans = given.keys.map(([child, key, parent, id]) => ({
      op: 'query' as const,
      db: made[0] ?? '',
      sql: `SELECT count(*) FROM ${child} WHERE ${key} IS NOT NULL AND ${key} NOT IN (SELECT ${id} FROM ${parent})`,
    }))
    for (const answer of await askAll(orphans, box, o)) expect(answer).toMatchObject({ status: 'ok', rows: [[0n]] })
  })

  test('efficiency is timed where no steps are counted', async () => {
    const task = taskOf(given.query, { ...alone, efficiencyWeight: 0.2, efficiencyBy: 'time' })
    const verdict = await verdictIn(box, task, given.rewritten)
    expect(verdict.components).toMatchObject({
      agreement: 1,
      time_ratio: expect.any(Number),
      r_ves: expect.any(Number),
    })
    expect(verdict.reward).toBeGreaterThanOrEqual(0.9)
  })

  test('a query that writes or reaches out is refused, and hacked as a submission', async () => {
    expect(await refused('query', given.forbidden)).toEqual(given.forbidden)
    const [first = ''] = given.forbidden
    expect(await verdictIn(box, taskOf(given.query), first)).toMatchObject({ status: 'hacked', reward: 0 })
    expect(await verdictIn(box, taskOf(given.query), given.rewritten)).toMatchObject({ reward: 1 })
  })

  test('a script that leaves its copy is refused', async () => {
    expect(await refused('script', given.leaving)).toEqual(given.leaving)
  })

  test('tools show typed values, describe, and drop what a script did', async () => {
    const [statement, row] = given.typed
    expect((await call('execute_sql', { sql: statement })).text.split('\n')[1]).toBe(row)
    const listed = await call('list_tables', {})
    const [first = ''] = listed.text.split('\n').filter((line) => line.includes('table, '))
    const table = first.split(' ')[0] ?? ''
    expect((await call('describe_table', { table: table.toUpperCase() })).text).toContain('PRIMARY KEY')
    expect((await call('sample_rows', { table, rows: 2 })).text.split('\n')).toHaveLength(4)
    expect(await call('sample_rows', { table: 'secrets' })).toMatchObject({ status: 'error' })
    // Nothing here is about time, and a busy machine takes longer than a task allows.
    const write = taskOf(given.write, { ...alone, limits: { executeMs: 120_000, verifyMs: 30_000 } })
    const emptying = { sql: `CREATE TABLE mark AS SELECT 1 AS one; SELECT count(*) FROM mark` }
    const both = await Promise.all([call('execute_sql', emptying, write), call('execute_sql', emptying, write)])
    for (const outcome of both) expect(outcome).toMatchObject({ status: 'ok', text: expect.stringMatching(/\n1\n/) })
    expect((await call('list_tables', {})).text).toBe(listed.text)
  })

  test('an endless statement is a time-out, after which the next one runs', async () => {
    const task = taskOf(given.query, { ...alone, limits: { executeMs: 300, verifyMs: 5000 } })
    expect(await call('execute_sql', { sql: given.endless }, task)).toMatchObject({ status: 'timeout' })
    const write = taskOf(given.write, { ...alone, limits: { executeMs: 300, verifyMs: 5000 } })
    expect(await call('execute_sql', { sql: given.endless }, write)).toMatchObject({ status: 'timeout' })
    expect(await call('execute_sql', { sql: 'SELECT 1' })).toMatchObject({ status: 'ok' })
  })
})
