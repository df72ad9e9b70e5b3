/** Runs whose members are jobs: more started than wanted, stopped early, topped up, cut on purpose, settled once. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { defineHarness, type Harness, type HostContext, type HostHarness } from '../../src/rollout/index.ts'
import { openWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

let world: World
let task: Task
beforeAll(async () => {
  world = await openWorld()
  task = await terminalTask('log-forensics')
  await world.script(task, [{ say: 'nothing' }])
})
afterAll(() => world[Symbol.asyncDispose]())

/** A harness whose attempts are told apart by the order in which they begin. */
function harnessOf(act: (nth: number, context: HostContext) => Promise<unknown>): Harness {
  let begun = 0
  const completed = { end: 'completed', detail: '', answer: null } as const
  const harness: HostHarness = {
    apiVersion: 1,
    name: 'acting',
    version: '1',
    dialect: 'chat',
    place: 'host',
    box: 'tools',
    run: async (context) => {
      begun += 1
      await act(begun, context)
      return completed
    },
  }
  return defineHarness(harness)
}

const say = ({ baseUrl, apiKey, model, task: of }: HostContext) =>
  fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: of.instruction }] }),
  })
const untilAborted = ({ signal }: HostContext) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
const eventsOf = async (runId: string) =>
  (await world.store.catalogue.runEvents(runId, { after: 0, limit: 99 })).map(({ kind }) => kind)

describe.runIf(await requireDocker())('a group of a run', () => {
  test('stops its straggler once enough members are usable, and keeps what it had', async () => {
    const stuck = Promise.withResolvers<undefined>()
    const harness = harnessOf(async (nth, context) => {
      await say(context)
      if (nth > 1) return stuck.promise
      stuck.resolve(undefined)
      return untilAborted(context)
    })
    const summary = await world.run({ tasks: [task], harness, n: 2, group: { over: 1 }, limits: { agent: 3 } })
    const [group] = summary.groups
    expect(group?.settled).toMatchObject({ state: 'settled', stoppedBy: 'usable', usable: 2 })
    const straggler = summary.rollouts.find(({ end }) => end === 'cancelled')
    expect(straggler).toMatchObject({ calls: 1, detail: 'its group stopped early (usable)', verdict: null })
    expect(group?.settled?.censored).toEqual({ members: 1, sampledTokens: straggler?.sampledTokens })
    expect(straggler?.sampledTokens).toBeGreaterThan(0)
    expect(summary.cancelled).toBe(false)
    expect(await eventsOf(summary.runId)).toEqual(['group_opened', 'group_settled'])
    expect((await world.store.catalogue.rounds(group?.groupId ?? ''))[0]?.settled).toEqual(group?.settled)
  })

  test('opens further slots for members that failed, and tries none of them again after that', async () => {
    const harness = harnessOf(async (nth, context) => {
      if (nth === 1) throw new Error('the network of the host is down')
      await say(context)
    })
    const options = { tasks: [task], harness, n: 2, infraRetries: 0, limits: { agent: 1, boot: 1 } }
    const summary = await world.run({ ...options, group: { topUp: 1, minUsable: 2 } })
    expect(summary.rollouts.map(({ slot, attempt, end }) => [slot, attempt, end])).toEqual([
      [0, 0, 'infra'],
      [1, 0, 'completed'],
      [2, 0, 'completed'],
    ])
    expect(summary.groups[0]?.settled).toMatchObject({
      state: 'settled',
      stoppedBy: null,
      usable: 2,
      members: [
        { slot: 0, out: 'infra' },
        { slot: 1, out: null },
        { slot: 2, out: null },
      ],
    })
  })

  test('settles as failed below its least number of usable members, after all attempts', async () => {
    const harness = harnessOf(() => Promise.reject(new Error('down')))
    const summary = await world.run({ tasks: [task], harness, n: 1, infraRetries: 1 })
    expect(summary.rollouts.map(({ attempt, end, retried }) => [attempt, end, retried])).toEqual([
      [0, 'infra', true],
      [1, 'infra', false],
    ])
    expect(summary.groups[0]?.settled).toMatchObject({ state: 'failed', usable: 0, members: [{ attempt: 1 }] })
  })

  test('cuts its agents at the horizon, which is no failure, and says what that is worth', async () => {
    const harness = harnessOf(async (_nth, context) => {
      expect((await say(context)).status).toBe(200)
      expect((await say(context)).status).toBe(429)
    })
    const summary = await world.run({ tasks: [task], harness, group: { horizon: 1, onCut: { horizon: 'zero' } } })
    expect(summary.rollouts).toMatchObject([
      {
        end: 'horizon',
        detail: '1 calls, as planned',
        calls: 1,
        verdict: { status: 'scored', reward: 0, verifier: { id: 'cut/horizon' } },
      },
    ])
    expect(summary.groups[0]?.settled).toMatchObject({ state: 'settled', members: [{ cut: 'zero', out: null }] })
  })
})
