import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId, type Task } from '../../src/core/index.ts'
import { referenceAgent, type RunSummary } from '../../src/rollout/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { containersOf, openWorld, terminalTask, withAgentTimeout, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

describe.runIf(await requireDocker())('the reference agent on a terminal task', () => {
  let world: World
  let task: Task

  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
  })
  afterAll(() => world[Symbol.asyncDispose]())

  async function running(steps: readonly object[], options: object = {}): Promise<RunSummary> {
    await world.script(task, steps)
    return world.run({ tasks: [task], harness: referenceAgent(), ...options })
  }

  test('the oracle script scores 1, and every stage, tool result and call is in the log', async () => {
    const oracle = await terminalOracle(task)
    const summary = await running(oracle)
    expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 1 }, taints: [] }])
    expect(summary.groups).toMatchObject([{ rewards: [1], mean: 1, deviation: 0, ends: { completed: 1 } }])
    const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
    const events = await world.store.recorder.events({ rolloutId })
    const stages = events.flatMap((event) => (event.kind === 'stage' ? [`${event.stage} ${event.phase}`] : []))
    const order = ['queue', 'boot', 'setup', 'agent', 'collect', 'verify']
    expect(stages).toEqual(order.flatMap((stage) => [`${stage} start`, `${stage} end`]))
    const [session] = await world.store.recorder.sessions({ rolloutId })
    const { calls } = await world.store.recorder.session(session?.id ?? '')
    expect(calls).toHaveLength(summary.rollouts[0]?.calls ?? -1)
    const ids = new Set(calls.map(({ intent }) => intent.id))
    const results = events.filter((event) => event.kind === 'tool_result')
    expect(results.length).toBeGreaterThan(2)
    expect(results.every(({ callId }) => callId !== null && ids.has(callId))).toBe(true)
    const commands = events.flatMap((event) => (event.kind === 'exec' ? [event.role] : []))
    expect(new Set(commands)).toEqual(new Set(['tool', 'verifier']))
    const boxes = events.flatMap((event) => (event.kind === 'box' ? [event.phase] : []))
    expect(boxes).toEqual(['created', 'destroyed', 'created', 'destroyed'])
    const view = await world.store.catalogue.rollout(rolloutId)
    expect(view).toMatchObject({ end: 'completed', attempt: 0, slot: 0, verdicts: [{ reward: 1 }] })
    expect(containersOf(summary.runId)).toEqual([])
  })

  test('a weak script scores 0', async () => {
    const summary = await running([{ shell: 'ls logs' }, { say: 'I give up.' }])
    expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 0 } }])
  })

  test('parallel calls run, and bad arguments come back as tool errors', async () => {
    const summary = await running([
      { parallel: [{ shell: 'echo one' }, { shell: 'echo two' }, { tool: 'shell', args: { command: 7 } }] },
      { say: 'done' },
    ])
    const events = await world.store.recorder.events({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
    const results = events.filter((event) => event.kind === 'tool_result')
    expect(results.map(({ status }) => status).toSorted()).toEqual(['error', 'ok', 'ok'])
    expect(new Set(results.map(({ callId }) => callId)).size).toBe(1)
  })

  test('an agent without end is stopped at its horizon and still verified', async () => {
    await world.script(
      task,
      Array.from({ length: 9 }, () => ({ shell: 'true' })),
    )
    const summary = await world.run({ tasks: [task], harness: referenceAgent({ maxTurns: 3 }) })
    expect(summary.rollouts).toMatchObject([{ end: 'horizon', calls: 3, verdict: { reward: 0 } }])
  })

  test('an agent that hangs in its own command is stopped, with its trajectory kept', async () => {
    const runId = newId()
    await world.script(task, [{ shell: 'echo begun' }, { shell: 'sleep 600' }, { say: 'never' }])
    const summary = await world.run({ runId, tasks: [withAgentTimeout(task, 8000)], harness: referenceAgent() })
    expect(summary.rollouts).toMatchObject([{ end: 'agent_timeout', calls: 2, verdict: { reward: 0 } }])
    expect(summary.rollouts[0]?.sampledTokens).toBeGreaterThan(0)
    expect(containersOf(runId)).toEqual([])
  })
})

async function terminalOracle(task: Task): Promise<readonly object[]> {
  return (await terminal.scripts.oracle(task)).script.steps
}
