/**
 * What remembering costs, beside the naive store of the same run: every call's request, prompt ids, sampled ids and
 * logprobs as one JSON text in SQLite. Sizes of three sessions, durable calls per second at a context of 32k tokens,
 * the longest stall of the event loop meanwhile, the way back from disk to rows, how the size grows with the turns, and
 * the memory of an export of few and of many sessions.
 *
 *   node bench/store.ts [--calls 1500] [--sessions 1000] [--only sizes,growth,throughput,export] [--json]
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Database from 'better-sqlite3'
import { newId } from '../src/core/index.ts'
import { commitFact, intentFact, promptFact, sampledFact, sessionFact } from '../src/testing/store/index.ts'
import { buildRows, openReader, openStore, type Segment } from '../src/trajectory/index.ts'
import { readFlags } from './flags.ts'
import { type Conversation, conversation } from './store/conversation.ts'
import type { ExportCost } from './store/export.ts'
import { Naive } from './store/naive.ts'

const { calls, sessions, only, json, smoke } = readFlags(
  { calls: 1500, sessions: 1000, only: 'sizes,growth,throughput,export', json: false },
  { calls: 16, sessions: 10 },
)

interface SessionSize {
  readonly name: string
  readonly calls: number
  readonly uniqueTokens: number
  readonly storedBytes: number
  readonly tokenColumnBytes: number
  readonly jsonBytes: number
  /** From disk to rows, bodies of the last call only: what an export does. Median of five. */
  readonly rowsMs: number
}

interface Throughput {
  /** Answered as durable, one behind the other in 64 sessions. */
  readonly callsPerSecond: number
  /** The same until the database had the last one. */
  readonly takenInPerSecond: number
  readonly naivePerSecond: number
  readonly longestStallMs: number
  readonly naiveStallMs: number
  /** Of a loop that does nothing for a second: what the machine itself does to it. */
  readonly idleStallMs: number
}

const wanted = only.split(',')
const sizes: SessionSize[] = []
const shapes = [
  ['1:5, 60 turns', { turns: 60, firstPrompt: 2000, prompt: 500, sampled: 100 }],
  ['100 turns to 100k', { turns: 100, firstPrompt: 2000, prompt: 800, sampled: 190 }],
  ['50 turns, 10k to 59k', { turns: 50, firstPrompt: 10_000, prompt: 500, sampled: 480 }],
] as const
for (const [name, shape] of wanted.includes('sizes') ? shapes : []) {
  sizes.push(await measureSession(name, conversation(smoke ? { ...shape, turns: 3 } : shape)))
}
const growth: { turns: number; bytesPerToken: number }[] = []
for (const turns of !wanted.includes('growth') ? [] : smoke ? [2, 4] : [32, 64, 128, 256]) {
  const { storedBytes, uniqueTokens } = await measureSession(
    `${turns} turns`,
    conversation({ turns, firstPrompt: 500, prompt: 300, sampled: 100 }),
  )
  growth.push({ turns, bytesPerToken: storedBytes / uniqueTokens })
}
const throughput = wanted.includes('throughput') ? await measureThroughput(calls) : null
const exports: { sessions: number; cost: ExportCost }[] = []
for (const count of wanted.includes('export') ? [sessions / 10, sessions] : []) {
  exports.push({ sessions: count, cost: await measureExport(count) })
}
if (json) console.log(JSON.stringify({ sizes, growth, throughput, exports }, null, 2))
else
  console.log([sizeTable(), growthTable(), throughputTable(), exportTable()].filter((text) => text !== '').join('\n\n'))

async function measureSession(name: string, talk: Conversation): Promise<SessionSize> {
  await using place = await temporary()
  const session = sessionFact()
  {
    await using store = await openStore(place.path)
    await store.recorder.openSession(session)
    let parent: Segment['parent'] = null
    for (const [seq, turn] of talk.turns.entries()) {
      const intent = intentFact(session.id, seq, turn.body)
      await store.recorder.beginCall(intent)
      const prompt = promptFact(intent, turn.newPrompt, parent)
      const answer = sampledFact(intent, turn.sampled, turn.logprobs, {
        segmentId: prompt.id,
        offset: prompt.tokens.length,
      })
      const { reply, replyMarks } = turn
      await store.recorder.commitCall(commitFact(intent, [prompt, answer], { reply, replyMarks }))
      parent = { segmentId: answer.id, offset: answer.tokens.length }
    }
  }
  const file = join(place.path, 'log.sqlite')
  const naive = new Naive(join(place.path, 'naive.sqlite'))
  for (const turn of talk.turns) naive.write(turn)
  naive.close()
  const uniqueTokens = talk.turns.reduce((sum, turn) => sum + turn.newPrompt.length + turn.sampled.length, 0)
  const times: number[] = []
  for (let round = 0; round < 5; round += 1) times.push(await timeRows(place.path, session.id, uniqueTokens))
  return {
    name,
    calls: talk.turns.length,
    uniqueTokens,
    storedBytes: (await stat(file)).size,
    tokenColumnBytes: tokenColumns(file),
    jsonBytes: (await stat(join(place.path, 'naive.sqlite'))).size,
    rowsMs: times.toSorted((a, b) => a - b)[2] ?? 0,
  }
}

async function timeRows(path: string, sessionId: string, expected: number): Promise<number> {
  await using reader = await openReader(path)
  const began = performance.now()
  const log = await reader.recorder.session(sessionId, { bodies: [] })
  const { rows } = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't' })
  const took = performance.now() - began
  if (rows.length !== 1 || rows[0]?.tokens.length !== expected) throw new Error('the session is not one whole row')
  return took
}

function tokenColumns(file: string): number {
  const db = new Database(file, { readonly: true })
  const sum = db.prepare('SELECT total(length(columns)) + total(length(segments)) FROM call_ends').pluck().get()
  db.close()
  return Number(sum)
}

/** What the cases before have left is not collected in the one that begins. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

/** Calls of 64 sessions in turn, each at 32k tokens of context with 500 new and 100 sampled ones. */
async function measureThroughput(count: number): Promise<Throughput> {
  await using place = await temporary()
  const talk = conversation({ turns: smoke ? 3 : 24, firstPrompt: 32_000, prompt: 500, sampled: 100 })
  const lanes = Array.from({ length: smoke ? 8 : 64 }, () => sessionFact())
  const store = await openStore(place.path)
  for (const session of lanes) await store.recorder.openSession(session)
  // Made beforehand: the load generator shares the event loop whose stalls are measured.
  const made = talk.turns.map((turn, seq) => ({ turn, intent: intentFact('', seq, turn.body) }))
  const write = async (session: (typeof lanes)[number], seq: number): Promise<void> => {
    // Calls come in from sockets, each in a turn of the loop of its own.
    await setImmediate()
    const { turn, intent: template } = made[seq] ?? {}
    if (turn === undefined || template === undefined) throw new Error('no such turn')
    const intent = { ...template, id: newId(), sessionId: session.id }
    await store.recorder.beginCall(intent)
    const prompt = promptFact(intent, seq === 0 ? turn.newPrompt.slice(0, 500) : turn.newPrompt)
    const answer = sampledFact(intent, turn.sampled, turn.logprobs, {
      segmentId: prompt.id,
      offset: prompt.tokens.length,
    })
    const { reply, replyMarks } = turn
    await store.recorder.commitCall(commitFact(intent, [prompt, answer], { reply, replyMarks }))
  }
  collect()
  // The first body of each session is whole; what follows is the steady state.
  await Promise.all(lanes.map((session) => write(session, 0)))
  const perLane = Math.max(1, Math.min(talk.turns.length - 1, Math.round(count / lanes.length)))
  const idle = monitorEventLoopDelay({ resolution: 1 })
  idle.enable()
  await setTimeout(smoke ? 10 : 1000)
  idle.disable()
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const began = performance.now()
  await Promise.all(
    lanes.map(async (session) => {
      for (let seq = 1; seq <= perLane; seq += 1) await write(session, seq)
    }),
  )
  const seconds = (performance.now() - began) / 1000
  await store.recorder.flush()
  const secondsTakenIn = (performance.now() - began) / 1000
  delay.disable()
  await store.close()
  const naive = new Naive(join(place.path, 'naive.sqlite'))
  const [, second] = talk.turns
  if (second === undefined) throw new Error('no turns')
  const rounds = smoke ? 2 : 60
  let naiveStallMs = 0
  const naiveBegan = performance.now()
  for (let round = 0; round < rounds; round += 1) {
    const one = performance.now()
    naive.write(second)
    naiveStallMs = Math.max(naiveStallMs, performance.now() - one)
  }
  const naiveSeconds = (performance.now() - naiveBegan) / 1000
  naive.close()
  return {
    callsPerSecond: (perLane * lanes.length) / seconds,
    takenInPerSecond: (perLane * lanes.length) / secondsTakenIn,
    naivePerSecond: rounds / naiveSeconds,
    longestStallMs: delay.max / 1e6,
    naiveStallMs,
    idleStallMs: idle.max / 1e6,
  }
}

/** In processes of their own: the peak is the export's. */
async function measureExport(count: number): Promise<ExportCost> {
  await using place = await temporary()
  const program = fileURLToPath(new URL('./store/export.ts', import.meta.url))
  const data = join(place.path, 'data')
  execFileSync(process.execPath, [program, 'record', data, String(count)], { stdio: 'inherit' })
  const told = execFileSync(process.execPath, [program, 'export', data, join(place.path, 'out')], { encoding: 'utf8' })
  return JSON.parse(told) as ExportCost
}

async function temporary(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'paddock-bench-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

function sizeTable(): string {
  const kB = (bytes: number): string => `${Math.round(bytes / 1000)} kB`
  return table([
    [
      'session',
      'calls',
      'unique tokens',
      'stored',
      'B/token',
      'token columns B/token',
      'full JSON',
      'smaller',
      'to rows',
    ],
    ...sizes.map((size) => [
      size.name,
      String(size.calls),
      String(size.uniqueTokens),
      kB(size.storedBytes),
      (size.storedBytes / size.uniqueTokens).toFixed(1),
      (size.tokenColumnBytes / size.uniqueTokens).toFixed(1),
      kB(size.jsonBytes),
      `${(size.jsonBytes / size.storedBytes).toFixed(0)}x`,
      `${size.rowsMs.toFixed(1)} ms`,
    ]),
  ])
}

function growthTable(): string {
  if (growth.length === 0) return ''
  return table([
    ['one session of', ...growth.map(({ turns }) => `${turns} turns`)],
    ['stored bytes per unique token', ...growth.map(({ bytesPerToken }) => bytesPerToken.toFixed(1))],
  ])
}

function throughputTable(): string {
  if (throughput === null) return ''
  return table([
    ['at 32k tokens of context', 'durable calls/s', 'longest stall of the loop'],
    ['this store', throughput.callsPerSecond.toFixed(0), `${throughput.longestStallMs.toFixed(1)} ms`],
    ['this store, until the database has them', throughput.takenInPerSecond.toFixed(0), ''],
    ['full JSON snapshots', throughput.naivePerSecond.toFixed(0), `${throughput.naiveStallMs.toFixed(1)} ms`],
    ['nothing (what the machine does to the loop)', '', `${throughput.idleStallMs.toFixed(1)} ms`],
    ['ratio', `${(throughput.callsPerSecond / throughput.naivePerSecond).toFixed(1)}x`, ''],
  ])
}

function exportTable(): string {
  return table([
    ['export of sessions of 20 turns, 10k tokens', 'written', 'sessions/s', 'peak memory'],
    ...exports.map(({ sessions: count, cost }) => [
      `${count} sessions`,
      `${Math.round(cost.outBytes / 1e6)} MB`,
      (count / cost.seconds).toFixed(0),
      `${Math.round(cost.peakBytes / 2 ** 20)} MiB`,
    ]),
  ])
}

/** Nothing where there is only a head. */
function table(rows: readonly (readonly string[])[]): string {
  if (rows.length < 2) return ''
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
