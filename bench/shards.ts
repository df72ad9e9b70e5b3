/**
 * One process against two shards behind one listener, recording on, beside a bare relay that reads nothing. Each process of a target, the
 * front too, gets a slice of a core by a control group, so that two cores have room for several "cores", the load generator and the fake
 * engine; how many slices a target fills is what its throughput grows with. Processor time is of all threads of all processes of a target.
 *
 *   node bench/shards.ts [--slice 0.15] [--shards 2,3] [--seconds 6] [--rounds 3]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { readFlags } from './flags.ts'
import { heard } from './processes.ts'
import { cpuUsOf, machineBusyUs } from './proxy/cpu.ts'
import { Slices } from './proxy/slices.ts'
import type { Load, Order } from './proxy/upstream.ts'

const { slice, shards, seconds, rounds, smoke } = readFlags(
  { slice: 0.15, shards: '2,3', seconds: 6, rounds: 3 },
  { slice: 0.5, shards: '2', seconds: 0.2, rounds: 1 },
)
const durationMs = seconds * 1000
const sessions = smoke ? 4 : 32
const scratch = mkdtempSync(join(tmpdir(), 'paddock-bench-shards-'))

interface Target {
  readonly name: string
  readonly url: string
  readonly keys: readonly string[]
  readonly pids: readonly number[]
  /** A connection per session; false: a pool whose connections carry all of them. */
  readonly own: boolean
}

interface Seen {
  readonly perSecond: number
  readonly us: number
  /** Of its slice, of the process that used most of it. */
  readonly fullest: number
  readonly errors: number
  readonly foreign: number
}

type Case = 'unary' | 'stream'
const cases = ['unary', 'stream'] as const

const upstream = fork(new URL('./proxy/upstream.ts', import.meta.url))
const { url: engineUrl } = await heard<{ url: string }>(upstream)
const children: ChildProcess[] = []
const slices = new Slices()
try {
  const targets = [
    ...(await plain('bare relay', 'relay')),
    ...(await plain('paddock, one process', 'record')),
    ...(await Promise.all(shards.split(',').map((count) => sharded(Number(count))))).flat(),
  ]
  // Until the compiler has done its work, which in a slice would take minutes.
  for (const target of targets) for (const kind of cases) await measure(target, kind)
  const bounded = targets
    .filter(({ own }) => own)
    .flatMap(({ pids }) => pids)
    .map((pid) => slices.give(pid, slice))
  // It must not be what is measured.
  slices.give(upstream.pid ?? 0, 1)
  const seen = new Map<string, Seen[]>()
  for (let round = 0; round < rounds; round += 1) {
    for (const target of targets) {
      for (const kind of cases) {
        const name = `${target.name}|${kind}`
        seen.set(name, [...(seen.get(name) ?? []), await measure(target, kind)])
      }
    }
  }
  const isBounded = bounded.every(Boolean)
  console.log(
    isBounded
      ? `medians of ${rounds} rounds; each process has ${slice} of a core; node ${process.versions.node}`
      : 'no control groups here: processes share the cores, and what more of them take says little',
  )
  const rows = targets.map((target) => {
    const row = (kind: Case) => {
      const [own = [], one = []] = [target.name, 'paddock, one process'].map((name) => seen.get(`${name}|${kind}`))
      const what = kind === 'unary' ? 'call' : 'event'
      return {
        [`${what}s/s`]: of(own, 'perSecond').toFixed(0),
        [`${what}s, ratio`]: `${median(own.map((round, at) => round.perSecond / (one[at]?.perSecond ?? Number.NaN))).toFixed(2)}x`,
        [`us/${what}`]: of(own, 'us').toFixed(kind === 'unary' ? 0 : 1),
        [`fullest, ${what}s`]: `${(of(own, 'fullest') * 100).toFixed(0)} %`,
      }
    }
    const all = cases.flatMap((kind) => seen.get(`${target.name}|${kind}`) ?? [])
    const errors = all.reduce((sum, one) => sum + one.errors, 0)
    return [target.name, { ...row('unary'), ...row('stream'), errors, 'foreign cores': of(all, 'foreign').toFixed(1) }]
  })
  console.table(Object.fromEntries(rows))
  const errors = [...seen.values()].flat().reduce((sum, one) => sum + one.errors, 0)
  if (smoke && errors > 0) throw new Error(`${errors} requests failed`)
} finally {
  for (const child of children) child.kill('SIGINT')
  await Promise.all(children.map(async (child) => (child.exitCode === null ? once(child, 'exit') : null)))
  upstream.kill()
  await once(upstream, 'exit')
  slices[Symbol.dispose]()
  rmSync(scratch, { recursive: true, force: true })
}

async function plain(name: string, kind: 'relay' | 'record'): Promise<readonly Target[]> {
  const directory = join(scratch, kind)
  const child = fork(new URL('./proxy/target.ts', import.meta.url), [kind, engineUrl, directory, String(sessions)])
  children.push(child)
  const { url, keys } = await heard<{ url: string; keys: string[] }>(child)
  return [{ name, url, keys, pids: [child.pid ?? 0], own: true }]
}

async function sharded(count: number): Promise<readonly Target[]> {
  const args = [engineUrl, join(scratch, `shards-${count}`), String(count), String(Math.ceil(sessions / count))]
  const child = fork(new URL('./proxy/front.ts', import.meta.url), args)
  children.push(child)
  const told = await heard<Pick<Target, 'url' | 'keys' | 'pids'>>(child)
  return [
    { name: `${count} shards, a connection each`, ...told, own: true },
    { name: `${count} shards, one pool for all`, ...told, own: false },
  ]
}

/** More than any target takes: 32 clients that ask again at once, or whose streams bring an event every millisecond. */
async function measure({ url, keys, pids, own }: Target, kind: Case): Promise<Seen> {
  const events = kind === 'unary' ? 0 : smoke ? 10 : 100
  const order = { kind, url, keys, clients: sessions, durationMs, events, everyMs: 1, ownConnections: own }
  const before = {
    cpu: pids.map(cpuUsOf),
    all: pids.reduce((sum, pid) => sum + cpuUsOf(pid), cpuUsOf(upstream.pid ?? 0)),
  }
  const [busy, at] = [machineBusyUs(), performance.now()]
  const load = await ask(order)
  const elapsedUs = (performance.now() - at) * 1000
  // What is written behind the answers belongs to them.
  await setTimeout(100)
  const used = pids.map((pid, place) => cpuUsOf(pid) - (before.cpu[place] ?? 0))
  const all = pids.reduce((sum, pid) => sum + cpuUsOf(pid), cpuUsOf(upstream.pid ?? 0)) - before.all
  // As many as the engine gave: several may be told in one.
  const units = kind === 'unary' ? load.requests : load.requests * events
  return {
    perSecond: (units / elapsedUs) * 1e6,
    us: used.reduce((sum, us) => sum + us, 0) / units,
    fullest: Math.max(...used) / elapsedUs / slice,
    errors: load.errors,
    foreign: Math.max(0, (machineBusyUs() - busy - all) / elapsedUs),
  }
}

function ask(order: Order): Promise<Load> {
  upstream.send(order)
  return heard<Load>(upstream)
}

function of(list: readonly Seen[], field: keyof Seen): number {
  return median(list.map((round) => round[field]))
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}
