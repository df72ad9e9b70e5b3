/**
 * What the proxy costs with recording on, beside nginx, a bare relay in Node (also one that asks the engine three times, as
 * `splice` must for a whole answer), a bare http-proxy and a naive recording proxy in the same run:
 * CPU of all threads per streamed event and per whole answer, added time to the first byte, and what many open streams
 * do to errors, first bytes, the event loop and memory. The fake engine and the load generator run in another process.
 * All targets are up at once and are measured in turn, several rounds; the figures are medians of the rounds.
 *
 *   node bench/proxy.ts [--rounds 3] [--seconds 4] [--quick]     quick: without the 4,096 streams
 *     [--targets nginx,record,…] [--cases stream,unary,first,open]   some of it only, for work on one thing
 *     [--warm-answers 15000] [--warm-seconds 6]                      how long each target is warmed up
 *     [--profile <directory>]                                        a CPU profile of each of our processes
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { readFlags } from './flags.ts'
import { heard } from './processes.ts'
import { cpuUsOf, machineBusyUs } from './proxy/cpu.ts'
import { startNginx } from './proxy/nginx.ts'
import type { Seen } from './proxy/target.ts'
import type { Load, Order } from './proxy/upstream.ts'

const flags = readFlags(
  {
    rounds: 3,
    seconds: 4,
    warmAnswers: 15_000,
    warmSeconds: 6,
    quick: false,
    targets: 'nginx,relay,relay-3,http-proxy,naive,record,splice',
    cases: 'stream,unary,first,open',
    profile: '',
  },
  { rounds: 1, seconds: 0.2, warmAnswers: 1, warmSeconds: 0.2 },
)
const { rounds, warmAnswers, profile, smoke } = flags
const wanted = { targets: new Set(flags.targets.split(',')), cases: new Set(flags.cases.split(',')) }
const durationMs = flags.seconds * 1000
/** Sessions of a target, and clients that stream at once. */
const sessions = smoke ? 8 : 256
const loads = smoke
  ? [{ streams: 16, events: 10, everyMs: 40, overMs: 200 }]
  : [
      { streams: 1024, events: 200, everyMs: 50, overMs: 2000 },
      ...(flags.quick ? [] : [{ streams: 4096, events: 20, everyMs: 1000, overMs: 12_000 }]),
    ]
const scratch = mkdtempSync(join(tmpdir(), 'paddock-bench-'))

interface Target {
  readonly name: string
  readonly url: string
  readonly keys: readonly string[]
  readonly pid: number
  /** Null for a program that is not ours to ask. */
  seen(): Promise<Seen | null>
  stop(): void
}

interface Round {
  readonly usPerEvent: number
  readonly usPerRequest: number
  readonly requestsPerSecond: number
  readonly firstByteMs: number
  /** The same without anything between, of the same round. */
  readonly directMs: number
  readonly errors: number
  /** CPU time of everybody else, share of one core. */
  readonly foreign: number
}

/** Of a case that was left out. */
const nothing: Load = { requests: 0, events: 0, errors: 0, firstByteMs: [] }

interface OpenStreams {
  readonly name: string
  readonly streams: number
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly delayP99Ms: number
  readonly kBPerStream: number
}

const upstream = fork(new URL('./proxy/upstream.ts', import.meta.url))
const { url: engineUrl } = await heard<{ url: string }>(upstream)
const targets: Target[] = []
try {
  for (const kind of ['relay', 'relay-3', 'http-proxy', 'naive', 'record', 'splice'] as const) {
    if (wanted.targets.has(kind)) targets.push(await startNode(kind, sessions, []))
  }
  const nginx = wanted.targets.has('nginx') ? await startNginx(engineUrl, scratch) : null
  if (nginx !== null) targets.unshift({ ...nginx, keys: ['none'], seen: () => Promise.resolve(null) })
  const seen = await measureAll()
  printRounds(seen)
  for (const target of targets) target.stop()
  const open: OpenStreams[] = []
  for (const kind of ['http-proxy', 'record'] as const) {
    if (!wanted.targets.has(kind) || !wanted.cases.has('open')) continue
    for (const load of loads) open.push(await openStreams(kind, load))
  }
  if (open.length > 0) printOpen(open)
  const errors = [...[...seen.values()].flat(), ...open].reduce((sum, one) => sum + one.errors, 0)
  if (smoke && errors > 0) throw new Error(`${errors} requests failed`)
} finally {
  for (const target of targets) target.stop()
  upstream.kill()
  rmSync(scratch, { recursive: true, force: true })
}

async function measureAll(): Promise<ReadonlyMap<string, readonly Round[]>> {
  for (const target of targets) {
    // Until the compiler has done its work: a proxy runs for days.
    if (wanted.cases.has('stream'))
      await load({ ...shape('stream'), ...to(target), durationMs: flags.warmSeconds * 1000 })
    if (wanted.cases.has('unary')) await warmUp(target)
  }
  const found = new Map<string, Round[]>(targets.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    const direct = wanted.cases.has('first')
      ? await load({ ...shape('first'), url: `${engineUrl}/v1`, keys: ['none'] })
      : nothing
    const directMs = median(direct.firstByteMs)
    for (const target of targets) found.get(target.name)?.push(await measure(target, directMs))
  }
  return found
}

/** As many answers for each target: what is called once per answer is compiled for good after some ten thousand of them. */
async function warmUp(target: Target): Promise<void> {
  for (let answers = 0; answers < warmAnswers;) {
    const { requests } = await load({ ...shape('unary'), ...to(target), durationMs: Math.min(2000, durationMs) })
    answers += Math.max(1, requests)
  }
}

async function measure(target: Target, directMs: number): Promise<Round> {
  const streams = await costing(target, shape('stream'))
  const whole = await costing(target, shape('unary'))
  const first = wanted.cases.has('first') ? await load({ ...shape('first'), ...to(target) }) : nothing
  return {
    // As many as the engine gave: a target may tell several in one.
    usPerEvent: streams.us / (streams.load.requests * shape('stream').events),
    usPerRequest: whole.us / whole.load.requests,
    requestsPerSecond: (whole.load.requests / durationMs) * 1000,
    firstByteMs: median(first.firstByteMs),
    directMs,
    errors: streams.load.errors + whole.load.errors + first.errors,
    foreign: (streams.foreign + whole.foreign) / 2,
  }
}

/** 256 streams of 40 events per second each; 16 clients that wait for whole answers; one client for first bytes. */
function shape(kind: 'unary' | 'stream' | 'first'): Omit<Order, 'url' | 'keys'> {
  if (kind === 'unary') return { kind, clients: 16, durationMs, events: 0, everyMs: 0 }
  if (kind === 'first') return { kind, clients: 1, durationMs: Math.min(1500, durationMs), events: 2, everyMs: 0 }
  return { kind, clients: sessions, durationMs, events: smoke ? 10 : 100, everyMs: 25 }
}

function to({ url, keys }: Target): Pick<Order, 'url' | 'keys'> {
  return { url, keys }
}

async function costing(
  target: Target,
  order: Omit<Order, 'url' | 'keys'>,
): Promise<{ load: Load; us: number; foreign: number }> {
  const ours = (): number => [target.pid, upstream.pid ?? 0, process.pid].reduce((sum, pid) => sum + cpuUsOf(pid), 0)
  const before = { us: cpuUsOf(target.pid), busy: machineBusyUs(), ours: ours(), at: performance.now() }
  if (!wanted.cases.has(order.kind)) return { load: nothing, us: Number.NaN, foreign: Number.NaN }
  const seen = await load({ ...order, ...to(target) })
  // What is written behind the answers belongs to them.
  await setTimeout(100)
  const us = cpuUsOf(target.pid) - before.us
  const elapsedUs = (performance.now() - before.at) * 1000
  const foreign = machineBusyUs() - before.busy - (ours() - before.ours)
  return { load: seen, us, foreign: Math.max(0, foreign / elapsedUs) }
}

/** A fresh process with as many sessions as streams: opens them over `overMs`, looks when all are open. */
async function openStreams(
  kind: 'http-proxy' | 'record',
  of: { streams: number; events: number; everyMs: number; overMs: number },
): Promise<OpenStreams> {
  const target = await startNode(kind, of.streams, ['--expose-gc'])
  try {
    const order = {
      ...to(target),
      clients: Math.min(64, sessions),
      durationMs: smoke ? 200 : 3000,
      events: 20,
      everyMs: 25,
    }
    await load({ ...order, kind: 'stream' })
    await setTimeout(500)
    const before = await target.seen()
    const loading = load({ ...to(target), kind: 'open', clients: of.streams, durationMs: of.overMs, ...of })
    await setTimeout(of.overMs + 0.5 * (of.events * of.everyMs - of.overMs))
    const during = await target.seen()
    const seen = await loading
    return {
      name: target.name,
      streams: of.streams,
      errors: seen.errors,
      p50Ms: median(seen.firstByteMs),
      p99Ms: seen.firstByteMs[Math.floor(seen.firstByteMs.length * 0.99)] ?? Number.NaN,
      delayP99Ms: during?.delayP99Ms ?? Number.NaN,
      kBPerStream: ((during?.rssBytes ?? 0) - (before?.rssBytes ?? 0)) / of.streams / 1024,
    }
  } finally {
    target.stop()
  }
}

function load(order: Order): Promise<Load> {
  upstream.send(order)
  return heard<Load>(upstream)
}

async function startNode(
  kind: 'relay' | 'relay-3' | 'http-proxy' | 'naive' | 'record' | 'splice',
  sessions: number,
  execArgv: readonly string[],
): Promise<Target> {
  const directory = join(scratch, `${kind}-${sessions}`)
  const child = fork(new URL('./proxy/target.ts', import.meta.url), [kind, engineUrl, directory, String(sessions)], {
    execArgv: [
      '--disable-warning=DEP0060',
      ...(profile === '' ? [] : ['--cpu-prof', '--cpu-prof-interval=250', `--cpu-prof-dir=${profile}`]),
      ...execArgv,
    ],
  })
  const { url, keys } = await heard<{ url: string; keys: string[] }>(child)
  const names = {
    relay: 'bare relay',
    'relay-3': 'bare relay, 3 exchanges',
    'http-proxy': 'bare http-proxy',
    naive: 'naive recorder',
    record: 'paddock, record',
    splice: 'paddock, splice',
  }
  return {
    name: names[kind],
    url,
    keys,
    pid: child.pid ?? 0,
    seen: () => {
      child.send('seen')
      return heard<Seen>(child)
    },
    // The profile is written when the process ends by itself.
    stop: () => child.kill('SIGINT'),
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

function printRounds(found: ReadonlyMap<string, readonly Round[]>): void {
  const base = found.get('nginx') ?? [...found.values()][0] ?? []
  const of = (list: readonly Round[], field: keyof Round) => median(list.map((round) => round[field]))
  /** Ratios are taken round by round: what disturbed a round disturbed both. */
  const ratio = (list: readonly Round[], field: keyof Round) =>
    `${median(list.map((round, place) => round[field] / (base[place]?.[field] ?? Number.NaN))).toFixed(2)}x`
  const added = (list: readonly Round[]) => median(list.map((round) => round.firstByteMs - round.directMs))
  const directMs = of(base, 'directMs')
  console.log(
    `medians of ${rounds} rounds; ratios to ${[...found.keys()][0]}; node ${process.versions.node}; direct first byte ${directMs.toFixed(2)} ms`,
  )
  console.table(
    Object.fromEntries(
      [...found].map(([name, list]) => [
        name,
        {
          'us/event': of(list, 'usPerEvent').toFixed(1),
          'event ratio': ratio(list, 'usPerEvent'),
          'us/request': of(list, 'usPerRequest').toFixed(0),
          'request ratio': ratio(list, 'usPerRequest'),
          'requests/s': of(list, 'requestsPerSecond').toFixed(0),
          'added first byte ms': added(list).toFixed(2),
          errors: list.reduce((sum, round) => sum + round.errors, 0),
          'foreign cores': of(list, 'foreign').toFixed(2),
        },
      ]),
    ),
  )
}

function printOpen(rows: readonly OpenStreams[]): void {
  console.table(
    Object.fromEntries(
      rows.map((row) => [
        `${row.streams} streams, ${row.name}`,
        {
          errors: row.errors,
          'first byte p50 ms': row.p50Ms.toFixed(2),
          'first byte p99 ms': row.p99Ms.toFixed(1),
          'loop delay p99 ms': row.delayP99Ms.toFixed(1),
          'kB per stream': row.kBPerStream.toFixed(1),
        },
      ]),
    ),
  )
}
