import { rm } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fsck, openReader, openStore, type SessionLog } from '../../src/trajectory/index.ts'
import { type FidelityEngine, startEngine } from '../fidelity/world.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { ClientJournal, type DoomedSession, missingFrom, type Seen, warmProxy, witnessedCall } from '../lab/doomed.ts'
import { dialects } from '../lab/official.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

/**
 * Invariant I5 under 64 concurrent calls, streams and whole answers in every dialect, recorded and spliced: the proxy is
 * killed at random instants of its work (after so many pieces of answers), opened anew over the same store, and at the end everything that a client could act on must
 * be there as it was seen. The clients' own journal, forced to disk, is the judge.
 */
const seed = Number(process.env['SEED'] ?? 20_261_121)
const kills = Number(process.env['KILLS'] ?? sized(500, 30))
const streams = 64
/** A store takes this many kills, then it is judged and a new one begins. */
const killsPerStore = 50
const strategies = ['record', 'splice', 'record', 'splice'] as const

let engine: FidelityEngine
let directory: string
beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine(directory, 'scripted-hermes', ['--tokens-per-second', '400'])
  const scripts = [
    { instruction: 'Talk.', steps: [{ say: 'one two three four five six seven eight nine ten' }] },
    { instruction: 'Act.', steps: [{ think: 'Now.' }, { parallel: [{ shell: 'rm -rf build' }, { shell: 'make' }] }] },
  ]
  await engine.post('/control/scripts', {
    scripts: scripts.map(({ instruction, steps }) => ({
      instruction,
      candidates: [{ name: 'only', weight: 0, steps }],
    })),
  })
})
afterAll(async () => {
  await engine[Symbol.asyncDispose]()
})

/** A busy machine takes ten times as long for a kill as an idle one. */
const limits = { timeout: Math.max(900_000, kills * 20_000) }

it(`holds everything that a client could act on, over ${kills} kills (seed ${seed})`, limits, async () => {
  const random = randomFrom(seed)
  const total = { acted: 0, seen: 0, interrupted: 0, killed: 0 }
  for (let first = 0; first < kills; first += killsPerStore) {
    const store = join(directory, `data-${first}`)
    const journal = new ClientJournal(join(directory, `client-${first}.jsonl`))
    const sessions: string[] = []
    const last = Math.min(kills, first + killsPerStore)
    let next = warmProxy(store, engine.url, strategies)
    for (let round = first; round < last; round += 1) {
      const proxy = await next
      const ready = await proxy.open()
      sessions.push(...ready.sessions.map((session) => session.id))
      // The one after this loads its code while this one works.
      if (round + 1 < last) next = warmProxy(store, engine.url, strategies)
      await killDuringLoad(round, ready, journal, { after: 1 + Math.floor(random() * 150), kill: () => proxy.kill() })
      total.killed += 1
    }
    const judged = await judge(store, sessions, journal.read())
    expect(judged.missing).toEqual([])
    total.acted += judged.acted
    total.seen += judged.seen
    total.interrupted += judged.interrupted
    await rm(store, { recursive: true, force: true })
    console.log(`seed ${seed}: ${JSON.stringify(total)}`)
  }
  expect(total.killed).toBe(kills)
  expect(total.acted).toBeGreaterThan(kills * 4)
  expect(total.interrupted).toBeGreaterThan(kills)
})

async function killDuringLoad(
  round: number,
  { origin, sessions }: { readonly origin: string; readonly sessions: readonly DoomedSession[] },
  journal: ClientJournal,
  { after, kill }: { readonly after: number; readonly kill: () => Promise<void> },
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: streams })
  const stop = new AbortController()
  const due = Promise.withResolvers<void>()
  let pieces = 0
  const piece = (): void => {
    pieces += 1
    if (pieces === after) due.resolve()
  }
  const work = async (index: number): Promise<void> => {
    for (let turn = 0; !stop.signal.aborted; turn += 1) {
      const session = sessions[index % sessions.length]
      const dialect = dialects[(index >> 2) % dialects.length]
      if (session === undefined || dialect === undefined) throw new Error('no session')
      const seen = (callId: string, acted: Seen['acted']) =>
        journal.write({ round, session: session.id, callId, acted })
      const question = (index + turn) % 2 === 0 ? 'Talk.' : 'Act.'
      const call = { origin, session, dialect, question, stream: (index + turn) % 4 !== 0, agent, seen, piece }
      try {
        await witnessedCall(call)
      } catch {
        // The connection broke: what came before is in the journal.
        return
      }
    }
  }
  const workers = Array.from({ length: streams }, (_, index) => work(index))
  await due.promise
  await kill()
  stop.abort()
  agent.destroy()
  await Promise.all(workers)
}

async function judge(
  directoryOf: string,
  sessions: readonly string[],
  seen: readonly Seen[],
): Promise<{ missing: readonly string[]; acted: number; seen: number; interrupted: number }> {
  // Opening again runs recovery on the last victim's calls.
  await (await openStore(directoryOf)).close()
  const logs: SessionLog[] = []
  await using reader = await openReader(directoryOf)
  for (const id of sessions) logs.push(await reader.recorder.session(id))
  const outcomes = logs.flatMap((log) => log.calls.map((call) => call.commit?.outcome.kind ?? 'none'))
  expect(outcomes).not.toContain('none')
  expect((await fsck(directoryOf)).problems).toEqual([])
  return {
    missing: missingFrom(logs, seen),
    acted: seen.filter((one) => one.acted !== null).length,
    seen: seen.length,
    interrupted: outcomes.filter((outcome) => outcome === 'interrupted').length,
  }
}
