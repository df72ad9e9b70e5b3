/** What a rollout asks besides its policy, on a node: the model that simulates a user, the one that judges, several agents at one task. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openReader, verdictInForce } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { coordinator, nodeArgs, started, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'

const orders = join(import.meta.dirname, '../../examples/environments/orders')
let directory: string
let engine: EngineProcess
const models = { customer: '', judge: '' }
const servers: Server[] = []

interface Message {
  readonly role: string
  readonly content: string
}

/** A server of chat completions that says what it is told to, and where it is. */
async function model(says: (messages: readonly Message[]) => string): Promise<string> {
  const server = createServer(
    (request, response) =>
      void (async () => {
        if (request.method !== 'POST') return void response.writeHead(404).end()
        const { messages } = (await json(request)) as { messages: readonly Message[] }
        const choices = [{ index: 0, message: { role: 'assistant', content: says(messages) }, finish_reason: 'stop' }]
        const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices, usage }))
      })(),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine()
  const replies = ['The wool scarf itches.', 'Please cancel the felt hat, too.', '###STOP###']
  models.customer = await model((messages) => {
    const turn = messages.filter(({ role }) => role === 'assistant').length
    return replies[turn] ?? '###STOP###'
  })
  models.judge = await model((messages) => {
    const asked = messages.find(({ role }) => role === 'user')?.content ?? ''
    const mark = /Reply with one JSON object.*"mark": "([0-9a-f]+)"/.exec(asked)?.[1]
    return JSON.stringify({ mark, explanation: 'so it is', choice: /^GOOD/m.test(asked) ? 'yes' : 'no' })
  })
})
afterEach(stopped)
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  await engine.kill()
})

const scarf = join(orders, 'played/scarf.json')
/** The agent does what the task's oracle does. */
async function scripted(): Promise<void> {
  const { instruction, data } = JSON.parse(await readFile(scarf, 'utf8')) as {
    instruction: string
    data: { solved: readonly ({ say: string } | object)[] }
  }
  const steps = data.solved.map((step) => ('say' in step ? { answer: step.say } : step))
  await engine.control('/scripts', { instruction, candidates: [{ name: 'only', weight: 0, steps }] })
}
const configOf = (engines: Readonly<Record<string, string>>, environment = join(orders, 'environment.ts')): string => {
  const all = Object.entries(engines).map(([role, url]) => [role, { url, model: 'm', kind: 'openai' }])
  return `export default ${JSON.stringify({ environments: [environment], engines: Object.fromEntries(all) })}\n`
}

it('a user who is simulated by a model is asked by the node, and is in what it hands in', async () => {
  await scripted()
  const here = await coordinator(directory, 'user', configOf({ user: models.customer }), '--engine', engine.url)
  const own = ['--config', join(directory, 'user.config.mjs')]
  const node = started([...(await nodeArgs(here, 'desk', 2)), ...own])
  await node.said('ready')
  const run = await paddock(['run', scarf, '--env', 'orders', '--n', '2', '--json', '--data', here.data, ...own])
  expect([run.code, run.err, JSON.parse(run.out).summary.rollouts]).toMatchObject([
    0,
    '',
    [
      { end: 'completed', verdict: { reward: 1 } },
      { end: 'completed', verdict: { reward: 1 } },
    ],
  ])
  const reader = await openReader(here.data)
  const [rollout] = await reader.catalogue.rollouts({})
  expect(rollout?.labels['node']).toBe('desk')
  const rolloutId = rollout?.id ?? ''
  const roles = (await reader.recorder.sessions({ rolloutId })).map(({ role }) => role)
  expect(roles).toEqual(['agent', 'user_simulator'])
  await reader.close()
})

it('a node without a model for the user gives its jobs back with the reason, and another one does them', async () => {
  await scripted()
  const here = await coordinator(directory, 'other', configOf({ user: models.customer }), '--engine', engine.url)
  const file = join(directory, 'without.config.mjs')
  await writeFile(file, configOf({}))
  const without = started([...(await nodeArgs(here, 'without', 2)), '--config', file])
  await without.said('ready')
  const own = ['--config', join(directory, 'other.config.mjs')]
  const run = paddock(['run', scarf, '--env', 'orders', '--n', '2', '--json', '--data', here.data, ...own])
  const given = await without.line(({ type, detail = '' }) => type === 'given_back' && detail.includes('USER_ENGINE'))
  expect(given.detail).toContain('Fix: ')
  const able = started([...(await nodeArgs(here, 'able', 2)), ...own])
  await able.said('ready')
  const ended = await run
  expect([ended.code, ended.err]).toEqual([0, ''])
  const { rollouts } = JSON.parse(ended.out).summary
  expect(rollouts).toMatchObject([{ verdict: { reward: 1 } }, { verdict: { reward: 1 } }])
})

/** The orders, with a judge in the place of their verifier. */
const judged = `
import orders from ${JSON.stringify(join(orders, 'environment.ts'))}
import { createJudge, parseRubric } from ${JSON.stringify(join(import.meta.dirname, '../../src/reward/index.ts'))}
const rubric = parseRubric({
  name: 'right', version: '1', items: [{ name: 'right', text: 'The answer is right.' }],
  canaries: [{ item: 'right', answer: 'GOOD canary', choice: 'yes' }, { item: 'right', answer: 'BAD canary', choice: 'no' }],
}, 'the test')
const byJudge = createJudge({ rubric, structured: false, bribes: 1 })
export default (kit) => ({
  ...orders(kit),
  verify: async ({ signal, judge }) => {
    const [draft] = await byJudge.score([{ question: 'What is it?', answer: 'GOOD work', reference: null }], { signal, judge })
    return draft
  },
})
`

it('a judge is asked by the node that verifies, and its session is handed in with the verdict', async () => {
  const plugin = join(directory, 'judged.ts')
  await writeFile(plugin, judged)
  const here = await coordinator(directory, 'judge', configOf({ judge: models.judge }, plugin), '--engine', engine.url)
  const own = ['--config', join(directory, 'judge.config.mjs')]
  const node = started([...(await nodeArgs(here, 'bench', 2)), ...own])
  await node.said('ready')
  const asked = ['run', join(orders, 'tasks/kettle.json'), '--env', 'orders', '--n', '2', '--json']
  const run = await paddock([...asked, '--data', here.data, ...own])
  expect([run.code, run.err]).toEqual([0, ''])
  const { rollouts } = JSON.parse(run.out).summary as { rollouts: readonly { rolloutId: string; verdict: object }[] }
  expect(rollouts).toMatchObject([{ verdict: { reward: 1 } }, { verdict: { reward: 1 } }])
  const reader = await openReader(here.data)
  for (const { rolloutId } of rollouts) {
    const sessions = await reader.recorder.sessions({ rolloutId })
    expect(sessions.map(({ role }) => role)).toEqual(['agent', 'judge'])
    const [verdict] = (await reader.catalogue.rollout(rolloutId)).verdicts
    expect(verdict?.judgeSessions).toEqual([sessions[1]?.id])
  }
  await reader.close()
})

it('a node without a model for the judge scores nothing and says so; the coordinator, which has one, scores it later', async () => {
  const plugin = join(directory, 'judged.ts')
  await writeFile(plugin, judged)
  const config = configOf({ judge: models.judge }, plugin)
  const here = await coordinator(directory, 'bench', config, '--engine', engine.url)
  const own = ['--config', join(directory, 'bench.config.mjs'), '--data', here.data]
  const file = join(directory, 'no-judge.config.mjs')
  await writeFile(file, configOf({}, plugin))
  await started([...(await nodeArgs(here, 'no-judge', 2)), '--config', file]).said('ready')
  const asked = ['run', join(orders, 'tasks/kettle.json'), '--env', 'orders', '--n', '2', '--json']
  const run = await paddock([...asked, ...own])
  const { runId, rollouts } = JSON.parse(run.out).summary as { runId: string; rollouts: readonly object[] }
  const unscored = {
    status: 'infra_error',
    reward: null,
    reason: expect.stringMatching(/role judge\. Fix: /) as string,
  }
  expect(rollouts).toMatchObject([{ verdict: unscored }, { verdict: unscored }])

  // Nothing that a node verifies for others has a judge, not even where the node has one.
  const again = await paddock(['rescore', runId, ...own])
  expect([again.code, again.out]).toEqual([
    3,
    expect.stringMatching(/only for rollouts that it ran itself\. Fix: .*--here/),
  ])
  await stopped()
  const alone = await paddock(['rescore', runId, ...own])
  expect([alone.code, alone.out]).toEqual([0, expect.stringContaining('2 rollouts verified again')])
  const reader = await openReader(here.data)
  const ids = (await reader.catalogue.rollouts({ runId })).map(({ id }) => id)
  const rewards = await Promise.all(
    ids.map(async (id) => verdictInForce((await reader.catalogue.rollout(id)).verdicts)?.reward),
  )
  await reader.close()
  expect(rewards).toEqual([1, 1])
})

it('a verification that asks a judge is left to a coordinator that verifies', async () => {
  const plugin = join(directory, 'judged.ts')
  await writeFile(plugin, judged)
  const config = configOf({ judge: models.judge }, plugin)
  const here = await coordinator(directory, 'both', config, '--engine', engine.url, '--here')
  const own = ['--config', join(directory, 'both.config.mjs'), '--data', here.data]
  const asked = ['run', join(orders, 'tasks/kettle.json'), '--env', 'orders', '--n', '4', '--json']
  const run = await paddock([...asked, ...own])
  const { runId } = JSON.parse(run.out).summary as { runId: string }
  const node = started([...(await nodeArgs(here, 'beside', 2)), '--config', join(directory, 'both.config.mjs')])
  await node.said('ready')
  const rescored = await paddock(['rescore', runId, ...own])
  expect([rescored.code, rescored.out]).toEqual([0, expect.stringContaining('4 rollouts verified again')])
  expect(node.lines.filter(({ type }) => type === 'verified')).toEqual([])
  for (const { detail } of node.lines.filter(({ type }) => type === 'given_back'))
    expect(detail).toContain('NODE_UNFIT')
})
