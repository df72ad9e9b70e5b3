import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'vitest'
import { type EngineAdapter, type ProxyOptions, vllmEngine } from '../../src/proxy/index.ts'
import type { Segment, SessionLog } from '../../src/trajectory/index.ts'
import {
  script,
  startEngine,
  startProxy,
  type EngineProcess,
  type TestProxy,
  type TestSession,
} from '../proxy/support.ts'

export const words = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
export const count = {
  model: 'scripted-hermes',
  messages: [{ role: 'user' as const, content: 'Count.' }],
}

/** Engines that the tests of a file share: starting one costs more than what is asked of it. */
export class Engines implements AsyncDisposable {
  readonly running: EngineProcess[] = []
  private readonly flags: readonly string[]
  private readonly adapter: (url: string) => EngineAdapter

  constructor(flags: readonly string[] = [], adapter = (url: string): EngineAdapter => vllmEngine({ url })) {
    this.flags = flags
    this.adapter = adapter
  }

  async start(size: number): Promise<this> {
    this.running.push(...(await Promise.all(Array.from({ length: size }, () => this.one()))))
    return this
  }

  at(index: number): EngineProcess {
    const engine = this.running[index]
    if (engine === undefined) throw new Error(`no engine ${index}`)
    return engine
  }

  /** Starts it again at its address, after `kill`. */
  async revive(index: number, ...more: string[]): Promise<void> {
    this.running[index] = await this.one('--port', new URL(this.at(index).url).port, ...more)
  }

  /** A proxy over all of them, which remember nothing of the test before. */
  async proxy(options: Partial<ProxyOptions> = {}): Promise<TestProxy> {
    await Promise.all(
      this.running.flatMap(({ url }) =>
        ['journal', 'faults'].map((what) => fetch(`${url}/control/${what}`, { method: 'DELETE' })),
      ),
    )
    const [first, ...others] = this.running.map(({ url }) => url)
    return startProxy(first ?? '', {
      engine: this.adapter(first ?? ''),
      replicas: others.map((url) => this.adapter(url)),
      ...options,
      fleet: { healthMs: 40, ejectMs: 40, ...options.fleet },
    })
  }

  /** The next answers of a session stop after some tokens, until they are aborted or `release` is called. */
  async hold(session: TestSession, times = 1): Promise<void> {
    const order = {
      kind: 'stall',
      at: 'mid_stream',
      token: 10,
      seconds: 600,
      count: times,
      match: { session: session.id },
    }
    await Promise.all(this.running.map((engine) => engine.fault(order)))
  }

  async release(): Promise<void> {
    await Promise.all(this.running.map(({ url }) => fetch(`${url}/control/faults`, { method: 'DELETE' })))
  }

  /** What runs and what begins stands still until `thaw`. */
  async freeze(): Promise<void> {
    await Promise.all(this.running.map(({ url }) => fetch(`${url}/pause?mode=keep`, { method: 'POST' })))
  }

  async thaw(): Promise<void> {
    await Promise.all(this.running.map(({ url }) => fetch(`${url}/resume`, { method: 'POST' })))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.running.map((engine) => engine.kill()))
  }

  private async one(...more: string[]): Promise<EngineProcess> {
    const engine = await startEngine(...this.flags, ...more)
    await engine.control('/scripts', script('Count.', [{ say: words }]))
    return engine
  }
}

/** A line of an engine's journal. */
export interface Generated {
  readonly kind: string
  readonly requestId: string
  readonly stream: boolean
  readonly adapter: string | null
  readonly promptTokenIds: readonly number[]
  readonly headers: Readonly<Record<string, string>>
  readonly cacheSalt: string | null
  readonly choices: readonly {
    readonly tokenIds: readonly number[]
    readonly logprobs: readonly number[]
    readonly finishReason: string
    readonly weightVersions: readonly { readonly version: string; readonly start: number; readonly end: number }[]
  }[]
}

export async function journal(engine: EngineProcess): Promise<readonly Generated[]> {
  const answer = await fetch(`${engine.url}/control/journal`)
  const { lines } = (await answer.json()) as { lines: readonly Generated[] }
  return lines.filter(({ kind }) => kind === 'generation')
}

/** Sessions that each replica has answered. */
export async function sessionsBy(engine: EngineProcess): Promise<ReadonlySet<string | undefined>> {
  return new Set((await journal(engine)).map(({ headers }) => headers['x-session-id']))
}

/** Asks once and gives the text. Throws on any other status than 200. */
export async function ask(session: TestSession, more: object = {}): Promise<string> {
  const answer = await session.post({ ...count, ...more })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  return text
}

/** Resolves when that many calls are with the engine. */
export async function inFlight(paddock: TestProxy, calls: number): Promise<void> {
  while (paddock.proxy.engineStatus().replicas.reduce((sum, one) => sum + one.inFlight, 0) < calls) await nextTurn()
}

/** The replica that a session is at home on. */
export async function homeOf(engines: Engines, session: TestSession): Promise<number> {
  const served = await Promise.all(engines.running.map(sessionsBy))
  return served.findIndex((set) => set.has(session.id))
}

/** What an engine was ordered, in order. */
export async function orders(engine: EngineProcess): Promise<readonly string[]> {
  const answer = await fetch(`${engine.url}/control/journal`)
  const { lines } = (await answer.json()) as { lines: readonly { readonly kind: string; readonly route: string }[] }
  return lines.filter(({ kind }) => kind === 'order').map(({ route }) => route)
}

/** What the journals of all replicas know of a call, leg by leg. */
export async function legs(engines: Engines, callId: string | undefined): Promise<readonly Generated[]> {
  const lines = (await Promise.all(engines.running.map(journal))).flat()
  return lines
    .filter(({ requestId }) => requestId.includes(callId ?? 'no call'))
    .toSorted((a, b) => a.promptTokenIds.length - b.promptTokenIds.length)
}

export const sampledOf = (log: SessionLog): Segment => {
  const [segment] = log.segments.filter(({ origin }) => origin === 'sampled')
  if (segment === undefined) throw new Error('nothing was sampled')
  return segment
}

/** Ids, logprobs and versions of a call are those of its legs, one behind the other. */
export async function expectLegs(engines: Engines, log: SessionLog, count: number): Promise<readonly Generated[]> {
  const segment = sampledOf(log)
  const all = await legs(engines, log.calls[0]?.intent.id)
  expect(all).toHaveLength(count)
  expect([...segment.tokens]).toEqual(all.flatMap((leg) => leg.choices[0]?.tokenIds ?? []))
  expect([...(segment.logprobs ?? [])]).toEqual(
    all.flatMap((leg) => leg.choices[0]?.logprobs ?? []).map((value) => Math.fround(value)),
  )
  let at = 0
  const versions = all.flatMap((leg) => {
    const from = at
    at += leg.choices[0]?.tokenIds.length ?? 0
    return (leg.choices[0]?.weightVersions ?? []).map((span) => [span.version, from + span.start, from + span.end])
  })
  expect(segment.policySpans.map(({ policy, start, end }) => [policy.weightVersion, start, end])).toEqual(versions)
  for (const [index, leg] of all.entries()) {
    const before = all.slice(0, index).flatMap((earlier) => earlier.choices[0]?.tokenIds ?? [])
    expect(leg.promptTokenIds).toEqual([...(all[0]?.promptTokenIds ?? []), ...before])
  }
  return all
}

/** Resolves when what runs, one answer, has been held. */
export async function sampling(engines: Engines, paddock: TestProxy): Promise<void> {
  await inFlight(paddock, 1)
  for (;;) {
    const drawn = await Promise.all(engines.running.map(({ url }) => drawnTokens(url)))
    if (drawn.reduce((sum, tokens) => sum + tokens, 0) >= 9) return
  }
}

async function drawnTokens(url: string): Promise<number> {
  const about = (await (await fetch(`${url}/control`)).json()) as { drawing: number }
  return about.drawing
}
