/** A verifier whose judge is an engine of its own: on the record token for token, linked to its verdict, and never trained. */
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import type { Task } from '../../src/core/index.ts'
import { roleEngine } from '../../src/cli/role-engine.ts'
import { type Environment, terminal } from '../../src/envs/index.ts'
import { createJudge, parseRubric } from '../../src/reward/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { selectForExport } from '../../src/trajectory/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import type { TestEngine } from '../proxy/support.ts'
import { model, openWorld, terminalTask, type World } from './world.ts'

let world: World
let task: Task
let judging: TestEngine
let front: Server
let judge: ReturnType<typeof roleEngine>

/** Stands before a scripted engine and prepares what it says: the choice that GOOD in a question asks for. */
function prepared(engine: TestEngine): Server {
  return createServer((asked, response) => {
    void (async () => {
      const body = await buffer(asked)
      const { messages = [] } = body.length === 0 ? {} : (JSON.parse(body.toString()) as { messages?: Message[] })
      const user = messages.find(({ role }) => role === 'user')?.content ?? ''
      const mark = /Reply with one JSON object.*"mark": "([0-9a-f]+)"/.exec(user)?.[1]
      if (mark !== undefined) {
        const said = JSON.stringify({ mark, explanation: 'so it is', choice: /^GOOD/m.test(user) ? 'yes' : 'no' })
        const candidates = [{ name: 'only', weight: 0, steps: [{ say: said }] }]
        await engine.control('/scripts', { instruction: user, candidates })
      }
      const { method = 'GET', url = '/', headers } = asked
      const { host: _host, ...kept } = headers
      const on = request(new URL(url, engine.url), { method, headers: kept }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      })
      on.end(body)
    })()
  })
}

interface Message {
  readonly role: string
  readonly content: string
}

const rubric = parseRubric(
  {
    name: 'right',
    version: '1',
    items: [{ name: 'right', text: 'The answer is right.' }],
    canaries: [
      { item: 'right', answer: 'GOOD canary', choice: 'yes' },
      { item: 'right', answer: 'BAD canary', choice: 'no' },
    ],
  },
  'the test',
)
const byJudge = createJudge({ rubric, structured: false, bribes: 1 })
const judged: Environment = {
  ...terminal,
  verify: async ({ signal, judge: find }) => {
    const asked = { question: 'What is it?', answer: 'GOOD work', reference: null }
    const [draft] = await byJudge.score([asked], { signal, ...(find === undefined ? {} : { judge: find }) })
    if (draft === undefined) throw new Error('no draft')
    return draft
  },
}

beforeAll(async () => {
  world = await openWorld()
  task = await terminalTask('log-forensics')
  await world.script(task, [{ shell: 'echo one > one' }, { say: 'done' }])
  judging = await useEngine('--model', 'scripted-hermes')
  front = prepared(judging).listen(0, '127.0.0.1')
  await once(front, 'listening')
  const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
  const { config } = await loadConfig({ cwd: '/', env: {}, overrides: { engines: { judge: { url, model } } } })
  judge = roleEngine('judge', config, { store: world.store })
})
afterAll(async () => {
  await judge[Symbol.asyncDispose]()
  front.closeAllConnections()
  front.close()
  await world[Symbol.asyncDispose]()
})

test('what a judge is asked is recorded beside its rollout, said of the verdict, and in a bucket of its own', async () => {
  const { rollouts, runId } = await world.run({
    tasks: [task],
    harness: referenceAgent(),
    environment: judged,
    n: 2,
    judge: judge.find,
  })
  expect(rollouts).toMatchObject([{ verdict: { status: 'scored', reward: 1 } }, { verdict: { status: 'scored' } }])
  let said = 0
  for (const { rolloutId, verdict, sampledTokens } of rollouts) {
    const sessions = await world.store.recorder.sessions({ rolloutId })
    expect(sessions.map(({ role }) => role)).toEqual(['agent', 'judge'])
    const [agent, of] = await Promise.all(sessions.map(({ id }) => world.store.recorder.session(id)))
    if (agent === undefined || of === undefined) throw new Error('no session')
    expect(verdict?.judgeSessions).toEqual([of.session.id])
    expect([of.session.labels['purpose'], of.closedAt === null]).toEqual(['verify', false])
    const purposes = new Set(of.calls.map(({ intent }) => intent.headers['x-paddock-purpose']))
    expect(purposes).toContain('case/right')
    expect([...purposes].every((one) => one === 'case/right' || one === 'canary/right')).toBe(true)
    const own = sum(agent.segments.map(({ origin, tokens }) => (origin === 'sampled' ? tokens.length : 0)))
    expect(sampledTokens).toBe(own)
    for (const call of of.calls) {
      const truth = await judging.generation(call.intent.id)
      const segments = of.segments.filter(({ callId, origin }) => callId === call.intent.id && origin === 'sampled')
      expect(segments.map(({ tokens }) => [...tokens])).toEqual(truth.choices.map(({ tokenIds }) => tokenIds))
      said += sum(truth.choices.map(({ tokenIds }) => tokenIds.length))
    }
  }
  const selection = selectForExport(world.store, { runIds: [runId] })
  for await (const { rows } of selection) expect(rows.length).toBeGreaterThan(0)
  const { accounting } = selection.summary()
  expect(accounting.notExported.judge).toBe(said)
  expect(said).toBeGreaterThan(0)
  expect(accounting.sampled).toBe(said + sum(rollouts.map(({ sampledTokens }) => sampledTokens)))
  expect(accounting.trainable).toBe(accounting.sampled - said)
})

test('a judge that no engine was configured for, or that is out, is no reward', async () => {
  const run = (of: typeof judge.find) =>
    world.run({ tasks: [task], harness: referenceAgent(), environment: judged, judge: of, infraRetries: 0 })
  const [unnamed] = (await run(null)).rollouts
  expect(unnamed?.verdict).toMatchObject({ status: 'infra_error', reward: null })
  const { config } = await loadConfig({
    cwd: '/',
    env: {},
    overrides: { engines: { judge: { url: 'http://127.0.0.1:9', model } } },
  })
  await using absent = roleEngine('judge', config, { store: world.store })
  const [out] = (await run(absent.find)).rollouts
  expect(out?.verdict).toMatchObject({ status: 'infra_error', reward: null })
  const sessions = await world.store.recorder.sessions({ rolloutId: out?.rolloutId ?? '' })
  expect(sessions.map(({ role }) => role)).toEqual(['agent'])
})

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)
