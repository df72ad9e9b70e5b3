/**
 * Agent SQL in a box: small executions a second through the box's resident program with both cores at work, beside the same
 * statements through a bare loop in the same boxes (no guard, no child, no deadline); one tool call; and how long after its
 * deadline an endless statement is answered, by engine.
 *
 *   node bench/sql.ts [--statements 1200] [--calls 50] [--kills 15] [--json]
 */
import { join } from 'node:path'
import { engineOf, type SqlEngine } from '../src/envs/sql/engines/index.ts'
import { sqlDataSchema } from '../src/envs/sql/data.ts'
import { residentIn } from '../src/envs/sql/resident.ts'
import type { RunnerLimits } from '../src/envs/sql/runner.ts'
import { openTaskBox, sql } from '../src/envs/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../src/sandbox/index.ts'
import { readFlags } from './flags.ts'

const { signal } = new AbortController()
const limits: RunnerLimits = { timeoutMs: 10_000, maxRows: 50, maxBytes: 36_000, memoryMb: 256 }
const deadlineMs = 200

const sets = [
  {
    set: 'shop',
    small: 'SELECT count(*) FROM customers WHERE country = "DE"',
    endless: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n',
  },
  {
    set: 'orchard',
    small: "SELECT count(*) FROM deliveries WHERE grade = 'juice'",
    endless: 'SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE hash(a.range, b.range) = 1',
  },
  {
    set: 'harbor',
    small: "SELECT count(*) FROM ship WHERE flag = 'NO'",
    endless: 'SELECT count(*) FROM ship a, ship b, ship c, ship d, ship e, ship f, ship g, ship h',
  },
] as const

interface Row {
  readonly engine: string
  readonly perSecond: number
  /** Null where the image holds nothing that could be asked so. */
  readonly floorPerSecond: number | null
  readonly toolCallMs: number
  readonly killP50Ms: number
  readonly killMaxMs: number
}

/** Statements that wait for their answers at once, per box. */
const inFlight = 2

async function measure(
  sandbox: SandboxProvider,
  { set, small, endless }: (typeof sets)[number],
  o: { readonly statements: number; readonly calls: number; readonly kills: number },
): Promise<Row> {
  const [task] = await sql.load(join(import.meta.dirname, `../examples/tasks/sql/${set}.json`))
  if (task === undefined) throw new Error(`no task of ${set}`)
  const engine = engineOf(sqlDataSchema.parse(task.data).database)
  const open = async () => {
    const box = await openTaskBox(sandbox, sql.box(task), { labels: { role: 'probe' }, signal })
    await sql.setup({ task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined })
    return box
  }
  const boxes = await Promise.all([open(), open()])
  try {
    const asks = boxes.map((box) => () => ask(box, engine, small, limits))
    await perSecond(asks, Math.min(40, o.statements))
    const rate = await perSecond(asks, o.statements)
    const [first] = asks
    const calls = await times(o.calls, async () => first?.())
    const kills = await killTimes(boxes[0], engine, endless, o.kills)
    const floors = boxes.map((box) => floorIn(box, engine, small))
    if (floors[0] !== null) await perSecond(asFloors(floors), Math.min(40, o.statements))
    return {
      engine: engine.title,
      perSecond: rate,
      floorPerSecond: floors[0] === null ? null : await perSecond(asFloors(floors), o.statements),
      toolCallMs: median(calls),
      killP50Ms: median(kills),
      killMaxMs: Math.max(...kills),
    }
  } finally {
    for (const box of boxes) await box[Symbol.asyncDispose]()
  }
}

async function ask(box: Box, engine: SqlEngine, statement: string, given: RunnerLimits): Promise<void> {
  const request = { op: 'query' as const, db: engine.database, sql: statement }
  const answer = await residentIn(box, engine).ask(request, { limits: given, signal })
  if (answer.status !== 'ok') throw new Error(`${statement}: ${answer.kind}: ${answer.message}`)
}

/** How many are answered a second, `inFlight` at once of each. */
async function perSecond(asks: readonly (() => Promise<void>)[], count: number): Promise<number> {
  const each = Math.ceil(count / asks.length / inFlight)
  const began = performance.now()
  const lane = async (one: () => Promise<void>) => {
    for (let i = 0; i < each; i += 1) await one()
  }
  await Promise.all(asks.flatMap((one) => Array.from({ length: inFlight }, () => lane(one))))
  return (1000 * each * inFlight * asks.length) / (performance.now() - began)
}

/** From the ask to the answer of endless statements, beyond their deadlines: the whole way there and back is in it. */
async function killTimes(box: Box, engine: SqlEngine, endless: string, count: number): Promise<readonly number[]> {
  const late = { ...limits, timeoutMs: deadlineMs }
  const request = { op: 'query' as const, db: engine.database, sql: endless }
  const found: number[] = []
  for (let i = 0; i < count; i += 1) {
    const began = performance.now()
    const answer = await residentIn(box, engine).ask(request, { limits: late, signal })
    if (answer.status !== 'error' || answer.kind !== 'timeout') throw new Error(`${endless} ended`)
    found.push(performance.now() - began - deadlineMs)
    await ask(box, engine, 'SELECT 1', limits)
  }
  return found
}

type Floor = () => Promise<void>

const asFloors = (floors: readonly (Floor | null)[]) => floors.flatMap((floor) => (floor === null ? [] : [floor]))

/** The same statement through one program of the box that does nothing else: an answer's line for each line it is sent. */
function floorIn(box: Box, { name, database }: SqlEngine, statement: string): Floor | null {
  const python = `import sqlite3,sys
for line in sys.stdin:
  print(sqlite3.connect("${database}").execute(line).fetchall(), flush=True)`
  const commands: Readonly<Record<string, readonly string[] | null>> = {
    sqlite: ['python3', '-I', '-S', '-c', python],
    postgres: ['psql', '-qAt', '-h', '/opt/paddock/postgres/run', '-U', 'reader', database],
    duckdb: null,
  }
  const command = commands[name] ?? null
  if (command === null) return null
  const lines: string[] = []
  const waiting: (() => void)[] = []
  let wake = Promise.withResolvers<void>()
  async function* stdin() {
    for (;;) {
      await wake.promise
      wake = Promise.withResolvers()
      yield Buffer.from(lines.splice(0).join(''))
    }
  }
  const onStdout = (chunk: Uint8Array) => {
    for (const byte of chunk) if (byte === 10) waiting.shift()?.()
  }
  void box.exec({ command, stdin: stdin(), timeoutMs: 600_000, output: 'told', onStdout }).catch(() => undefined)
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      lines.push(`${statement}${name === 'postgres' ? ';' : ''}\n`)
      wake.resolve()
    })
}

async function times(count: number, work: () => Promise<unknown>): Promise<readonly number[]> {
  const found: number[] = []
  for (let i = 0; i < count; i += 1) {
    const began = performance.now()
    await work()
    found.push(performance.now() - began)
  }
  return found
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

const flags = readFlags({ statements: 1200, calls: 50, kills: 15, json: false }, { statements: 4, calls: 1, kills: 1 })
const sandbox = dockerProvider()
try {
  const rows: Row[] = []
  for (const one of sets) rows.push(await measure(sandbox, one, flags))
  if (flags.json) console.log(JSON.stringify(rows))
  else {
    console.log('engine      executions/s   a bare loop in   one tool   answered after the deadline')
    console.log('            (two boxes)    the same boxes   call p50   p50       max')
    for (const row of rows) {
      const floor = row.floorPerSecond === null ? '-' : row.floorPerSecond.toFixed(0)
      const cells = [
        row.perSecond.toFixed(0).padEnd(15),
        floor.padEnd(17),
        `${row.toolCallMs.toFixed(1)} ms`.padEnd(11),
      ]
      const kills = [`${row.killP50Ms.toFixed(1)} ms`.padEnd(10), `${row.killMaxMs.toFixed(1)} ms`]
      console.log([row.engine.padEnd(12), ...cells, ...kills].join(''))
    }
  }
} finally {
  await sandbox.close()
}
