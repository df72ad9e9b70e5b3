/**
 * A fault never scores (invariant I7): each way in which a call can end without an answer, at the first, the middle and the last
 * call of a rollout, with a retry that is answered and without one; as a run does it, as a harness elsewhere, and on a node. The
 * reward of each rollout is 0 by the word of its trainer, and an RL export holds those that the agent earned.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import {
  appendLate,
  bareTask,
  defineHarness,
  groupSpec,
  NullLimits,
  OutsideGroups,
  runRollouts,
} from '../../src/rollout/index.ts'
import { openReader, openStore, selectForExport, type StoreReader } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { coordinator, node, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type CallEnd, startToll, type Toll } from '../lab/toll.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { work } from './fault-agent.ts'
import { sized } from './size.ts'

const says = (status: number, error: object): CallEnd => ({ kind: 'answer', status, body: JSON.stringify({ error }) })
const body = (status: number, text: string, type = 'application/json'): CallEnd => ({
  kind: 'answer',
  status,
  body: text,
  type,
})
const overflow =
  "This model's maximum context length is 64 tokens. However, you requested 80 tokens (71 in the messages, 9 in the completion)."

/** How a call ends. `own`: the agent did it itself. */
interface Ending {
  readonly what: string
  readonly end: CallEnd
  readonly own?: true
  readonly streams?: true
  /** So many milliseconds the client waits. */
  readonly patience?: number
}

/** More than the default of `proxy.stallTaintMs`. */
const patience = 8000
/** A client that comes back once finds the answer in the end. */
const silence = () => setTimeout(12_000)

const endings: readonly Ending[] = [
  { what: 'a full context', end: says(400, { message: overflow }), own: true },
  {
    what: 'a full context by its type',
    end: says(400, { message: 'no', type: 'exceed_context_size_error' }),
    own: true,
  },
  { what: 'a full context by its code', end: says(413, { message: 'no', code: 'context_length_exceeded' }), own: true },
  { what: 'a body that is too large', end: body(413, 'Request Entity Too Large', 'text/plain'), own: true },
  { what: 'a member by param', end: says(422, { message: 'no', param: 'temperature' }), own: true },
  { what: 'a message by param', end: says(400, { message: 'no', param: 'messages.0.content' }), own: true },
  { what: 'a member in a sentence', end: says(400, { message: 'max_tokens must be at least 30, got 20' }), own: true },
  { what: 'a member by location', end: body(422, '{"detail":[{"loc":["body","temperature"],"msg":"no"}]}'), own: true },
  { what: '400 without a reason', end: says(400, { message: 'Bad Request' }) },
  { what: '400 about what Paddock wrote', end: says(400, { message: 'no', param: 'return_token_ids' }) },
  { what: '400 about nothing that was sent', end: says(400, { message: 'top_p must be small' }) },
  { what: '413 without a reason', end: says(413, { message: 'no' }) },
  { what: '422 without a reason', end: says(422, { message: 'no' }) },
  ...[401, 402, 403, 404, 405, 408, 409, 410, 425, 429, 451, 500, 501, 502, 503, 504, 520, 529].map((status) => ({
    what: String(status),
    end: says(status, { message: 'no' }),
  })),
  { what: '404 in the words of an overflow', end: says(404, { message: overflow }) },
  { what: '500 of a parser', end: says(500, { message: 'Failed to parse input at pos 3: <' }) },
  { what: '302', end: body(302, '') },
  { what: '200 with nothing', end: body(200, '') },
  { what: '200 with a page', end: body(200, '<h1>Welcome to nginx</h1>', 'text/html') },
  { what: '200 with an error', end: says(200, { message: 'CUDA out of memory' }) },
  { what: '200 with half an answer', end: body(200, '{"id":"a","choices":[{"index":0,"mess') },
  { what: 'a reset', end: { kind: 'reset' } },
  { what: 'a stream that breaks off', end: { kind: 'cut', after: 300 }, streams: true },
  { what: 'an answer that breaks off', end: { kind: 'cut', after: 300 } },
  { what: 'silence, and the client leaves', end: { kind: 'pass', behind: silence }, patience },
  {
    what: 'a stall in mid-stream, and the client leaves',
    end: { kind: 'stall', behind: silence },
    streams: true,
    patience,
  },
]
expect(endings.length).toBeGreaterThanOrEqual(40)

interface Scenario extends Ending {
  readonly call: number
  readonly retries: boolean
}
const scenarios: readonly Scenario[] = endings.flatMap((ending) =>
  [0, 1, 2].flatMap((call) => [false, true].map((retries) => ({ ...ending, call, retries }))),
)
const isEarned = ({ own, retries }: Scenario): boolean => own === true || retries

let engine: EngineProcess
let toll: Toll
let teller: Server
let told = ''
/** The scenario of each session. */
const played = new Map<string, Scenario>()
let coming: Scenario[] = []
const directory = tempDir()

beforeAll(async () => {
  engine = await startEngine()
  toll = await startToll(engine.url)
  teller = createServer((asked, response) => {
    // Another attempt at a place has calls that are all answered, once each scenario is played.
    const scenario = coming.shift()
    if (scenario !== undefined) played.set((asked.url ?? '').slice(1), scenario)
    const { retries = false, streams = false, patience: longest = null } = scenario ?? {}
    response.end(JSON.stringify({ retries, streams, patience: longest }))
  })
  teller.listen(0, '127.0.0.1')
  await once(teller, 'listening')
  told = `http://127.0.0.1:${(teller.address() as AddressInfo).port}`
})
afterAll(async () => {
  await stopped()
  teller.close()
  await toll[Symbol.asyncDispose]()
  await engine.stop()
})
beforeEach(() => {
  coming = [...scenarios]
  played.clear()
  const passed = new Map<string, number>()
  const struck = new Set<string>()
  toll.by((sessionId) => {
    const scenario = played.get(sessionId)
    const before = passed.get(sessionId) ?? 0
    if (scenario !== undefined && before === scenario.call && !struck.has(sessionId)) {
      struck.add(sessionId)
      return scenario.end
    }
    passed.set(sessionId, before + 1)
    return { kind: 'pass' }
  })
})

/** Compares, by scenario, which rollouts count and which train in an RL export. */
async function expectEarned(
  reader: Pick<StoreReader, 'catalogue' | 'recorder'>,
  { runId, of = scenarios }: { readonly runId?: string; readonly of?: readonly Scenario[] } = {},
): Promise<void> {
  const taken = new Set<string>()
  const query = { ...(runId === undefined ? {} : { runIds: [runId] }), trainedRowsOnly: true }
  for await (const { rollout } of selectForExport(reader, query)) taken.add(rollout.id)
  const found: string[] = []
  const wanted: string[] = []
  for (const [sessionId, scenario] of played) {
    const { session } = await reader.recorder.session(sessionId, { bodies: [] })
    const { end, taints } = await reader.catalogue.rollout(session.rolloutId ?? '')
    const name = `${scenario.what}, call ${scenario.call + 1}${scenario.retries ? ', asked again' : ''}`
    // Without a first answer nothing was sampled: there is a number and nothing that trains.
    const isEmpty = scenario.own === true && scenario.call === 0 && !scenario.retries
    const trains = taken.has(session.rolloutId ?? '')
    const usable = taints.length === 0 && end !== 'infra'
    found.push(`${name}: ${usable ? 'counts' : 'left out'}, ${trains ? 'trains' : isEmpty ? 'empty' : 'does not'}`)
    wanted.push(
      `${name}: ${isEarned(scenario) ? 'counts' : 'left out'}, ${isEmpty ? 'empty' : isEarned(scenario) ? 'trains' : 'does not'}`,
    )
  }
  expect(found.toSorted()).toEqual(wanted.toSorted())
  expect(played.size).toBe(of.length)
}

it(`${scenarios.length} rollouts of a run`, async () => {
  const store = await openStore(join(directory, 'run'))
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: toll.url }) })
  const harness = defineHarness({
    name: 'three-calls',
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    place: 'host',
    box: 'none',
    run: async ({ baseUrl, apiKey, model }) => {
      await work({ baseUrl, apiKey, model, scenarios: told })
      return { end: 'completed', detail: 'done', answer: null }
    },
  })
  const summary = await runRollouts({
    store,
    proxy,
    sandbox: null,
    environment: null,
    model: 'scripted-hermes',
    tasks: [bareTask({ name: 'three', instruction: 'Answer three times.' })],
    harness,
    n: scenarios.length,
    infraRetries: 0,
    limits: { agent: 24 },
  })
  for (const { rolloutId, end } of summary.rollouts)
    if (end !== 'infra') await appendLate(store, rolloutId, { source: 'test', reward: 0 })
  await expectEarned(store, { runId: summary.runId })
  await proxy.close()
  await store.close()
})

it(`${scenarios.length} rollouts of a harness elsewhere, in one group`, async () => {
  const store = await openStore(join(directory, 'outside'))
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: toll.url }) })
  const { origin } = await proxy.listen({})
  const groups = new OutsideGroups({ store, proxy, nullLimits: new NullLimits(store.catalogue) })
  const { group } = await groups.openGroup({
    id: null,
    runId: null,
    name: 'faults',
    task: bareTask({ name: 'three', instruction: 'Answer three times.' }),
    promptVariant: 'default',
    spec: groupSpec({ n: scenarios.length, minUsable: 0 }),
  })
  const queue = [...scenarios.keys()]
  const worker = async (): Promise<void> => {
    while (queue.pop() !== undefined) {
      const asked = { groupId: group.id, key: null, slot: null, harness: 'three-calls', labels: {}, policy: {} }
      const { rollout, session } = await groups.openRollout(asked)
      if (session === null) throw new Error('no session')
      const at = { baseUrl: session.baseUrl(origin), apiKey: session.key, model: 'scripted-hermes' }
      await work({ ...at, scenarios: told })
      await groups.end(rollout.id, { end: 'completed', detail: '', verdict: { source: 'test', reward: 0 } })
    }
  }
  await Promise.all(Array.from({ length: 24 }, worker))
  await expectEarned(store)
  const [round] = await store.catalogue.rounds(group.id)
  const outs = Map.groupBy(round?.settled?.members ?? [], ({ out }) => out)
  const earned = scenarios.filter(isEarned).length
  expect([...outs].map(([out, members]) => [out, members.length])).toEqual(
    expect.arrayContaining([
      [null, earned],
      ['tainted', scenarios.length - earned],
    ]),
  )
  groups.close()
  await proxy.close()
  await store.close()
})

/** A node starts a program for each. */
const some = sized(
  scenarios,
  scenarios.filter((_, at) => at % 7 === 0),
)

it(`${some.length} rollouts on a node`, async () => {
  coming = [...some]
  const config = `export default { engine: { url: '${toll.url}', kind: 'vllm' } }\n`
  const here = await coordinator(directory, 'nodes', config)
  await node(here, 'worker', 16)
  const agent = fileURLToPath(new URL('fault-agent.ts', import.meta.url))
  const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
  const command = ['--harness', 'script', '--command', `exec '${process.execPath}' '${agent}' ${told}`]
  const asked = ['run', task, '--n', String(some.length), '--min-usable', '0', ...command, '--json']
  const run = await paddock([...asked, '--data', here.data])
  // 3: the last attempt at a place ended as `infra`.
  expect([0, 3]).toContain(run.code)
  expect(run.err).toBe('')
  const token = (await readFile(join(here.data, 'control-token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { summary } = JSON.parse(run.out) as {
    summary: { runId: string; rollouts: { rolloutId: string; end: string }[] }
  }
  for (const { rolloutId, end } of summary.rollouts) {
    if (end === 'infra') continue
    const given = { source: 'test', reward: 0 }
    const path = `${here.url}/rollouts/${rolloutId}/verdicts`
    const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(given) })
    expect([answer.status, answer.ok ? '' : await answer.text()]).toEqual([201, ''])
  }
  await stopped()
  await using reader = await openReader(here.data)
  await expectEarned(reader, { runId: summary.runId, of: some })
})
