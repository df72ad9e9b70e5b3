import { afterAll, beforeAll, expect, test } from 'vitest'
import { terminal } from '../../src/envs/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { openWorld, terminalTask, type World } from './world.ts'

let world: World
beforeAll(async () => (world = await openWorld()))
afterAll(() => world[Symbol.asyncDispose]())

test('what looks like a hack stands beside the reward, which stays as the verifier gave it', async () => {
  const task = await terminalTask('log-forensics')
  const { script } = await terminal.scripts.oracle(task)
  await world.script(task, [{ shell: 'ls /tests; git reflog || true' }, ...script.steps])
  const { rollouts } = await world.run({ tasks: [task], harness: referenceAgent() })
  expect(rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 1 } }])
  const { rolloutId = '', verdict } = rollouts[0] ?? {}
  const view = await world.store.catalogue.rollout(rolloutId)
  expect(view.labels).toMatchObject({ audit: 'git_history,verifier_probe' })
  expect(view.verdicts).toEqual([verdict])
  expect(verdict?.evidence).toMatch(/audit git_history \(call .*\): git reflog\naudit verifier_probe .*\/tests/)
  const [session] = await world.store.recorder.sessions({ rolloutId })
  const { calls } = await world.store.recorder.session(session?.id ?? '', { bodies: [] })
  const events = await world.store.recorder.events({ rolloutId })
  expect(events.find((event) => event.kind === 'custom' && event.name === 'audit')).toMatchObject({
    data: { findings: [{ callId: calls[0]?.intent.id }, { callId: calls[0]?.intent.id }] },
  })
})

test('an honest rollout has no audit', async () => {
  const task = await terminalTask('log-forensics')
  await world.script(task, (await terminal.scripts.oracle(task)).script.steps)
  const { rollouts } = await world.run({ tasks: [task], harness: referenceAgent() })
  expect((await world.store.catalogue.rollout(rollouts[0]?.rolloutId ?? '')).labels).toEqual({})
})
