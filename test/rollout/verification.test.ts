/** Verification as a run meets it: faults, verifiers that hang, processes that die between work and verdict. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PaddockError, type Task } from '../../src/core/index.ts'
import { type Environment, terminal } from '../../src/envs/index.ts'
import { defineHarness, rescoreRollouts, shellHarness } from '../../src/rollout/index.ts'
import type { Store } from '../../src/trajectory/index.ts'
import { openOwnWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

let world: World
let task: Task
beforeAll(async () => {
  world = await openOwnWorld()
  task = await terminalTask('log-forensics')
  await world.script(task, [{ say: 'nothing to do' }])
})
afterAll(() => world[Symbol.asyncDispose]())

const asks = (instruction: string) => {
  const body = JSON.stringify({ messages: [{ role: 'user', content: instruction }] })
  const filled = body.replace('{', '{"model":"\'"$OPENAI_MODEL"\'",')
  return `curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '${filled}'`
}
const harness = () => shellHarness({ command: asks('ask of the test') })

/** Verifies as `verify` says, told which time it is. */
function verifying(
  verify: (nth: number, context: Parameters<Environment['verify']>[0]) => ReturnType<Environment['verify']>,
) {
  let count = 0
  const environment: Environment = { ...terminal, verify: (context) => verify((count += 1), context) }
  return { environment, count: () => count }
}

describe.runIf(await requireDocker())('a verification', () => {
  beforeAll(() =>
    world.engine.control('/scripts', {
      instruction: 'ask of the test',
      candidates: [{ name: 'only', weight: 0, steps: [{ say: 'nothing to do' }] }],
    }),
  )

  test('is tried again after a fault, as a box that does not start is', async () => {
    const { environment, count } = verifying((nth, context) => {
      if (nth < 3) throw new PaddockError('BOX_START_FAILED', 'the daemon answers 500')
      return terminal.verify(context)
    })
    const { rollouts } = await world.run({ tasks: [task], environment, harness: harness() })
    expect(rollouts).toMatchObject([{ verdict: { status: 'scored', reward: 0 } }])
    expect(count()).toBe(3)
  })

  test('that fails each time has no number, and rescore gives it one', async () => {
    const { environment, count } = verifying(() => {
      throw new PaddockError('BOX_START_FAILED', 'the daemon answers 500')
    })
    const { rollouts, runId } = await world.run({ tasks: [task], environment, harness: harness() })
    expect(rollouts).toMatchObject([{ verdict: { status: 'infra_error', reward: null } }])
    expect(count()).toBe(3)
    const { store, sandbox } = world
    const recorded = await store.catalogue.rollouts({ runId })
    const { signal } = new AbortController()
    const rescored = await rescoreRollouts({ store, environment: () => terminal, sandbox, rollouts: recorded, signal })
    expect(rescored).toMatchObject([{ outcome: 'changed', after: { status: 'scored', reward: 0 } }])
  })

  test('whose budget is used up is not tried again', async () => {
    const { environment, count } = verifying((_nth, { signal }) => untilAborted(signal))
    const budgets = { verifyMs: 300 }
    const { rollouts } = await world.run({ tasks: [task], environment, harness: harness(), budgets })
    expect(rollouts).toMatchObject([{ verdict: { status: 'infra_error', reason: expect.stringContaining('300 ms') } }])
    expect(count()).toBe(1)
  })

  test('of a harness without a box has nothing to look at, also after a kill between work and end', async () => {
    const bare = defineHarness({
      apiVersion: 1,
      name: 'bare',
      version: '1',
      dialect: 'chat',
      place: 'host',
      box: 'none',
      run: async ({ baseUrl, apiKey, model }) => {
        const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'ask of the test' }] })
        await fetch(`${baseUrl}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${apiKey}` },
          body,
        })
        return { end: 'completed', detail: '', answer: null }
      },
    })
    const whole = await world.run({ tasks: [task], harness: bare })
    expect(whole.rollouts).toMatchObject([{ end: 'completed', verdict: null }])
    const killed = await world
      .run({ tasks: [task], harness: bare, store: withoutEnds(world.store) })
      .catch((error: unknown) => error)
    expect(killed).toMatchObject({ message: 'killed' })
    const { store, sandbox } = world
    const left = (await store.catalogue.rollouts({})).filter(
      (one) => one.harness === 'bare' && one.work !== null && one.end === null,
    )
    const { signal } = new AbortController()
    const rescored = await rescoreRollouts({ store, environment: () => terminal, sandbox, rollouts: left, signal })
    expect(rescored).toMatchObject([{ outcome: 'verified', after: null }])
  })
})

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
}

/** How a rollout ended is never written: the process is gone before. */
function withoutEnds(store: Store): Store {
  const catalogue = new Proxy(store.catalogue, {
    get: (of, name) => {
      if (name === 'endRollout') return () => Promise.reject(new Error('killed'))
      const value: unknown = Reflect.get(of, name)
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
  return { ...store, catalogue, recorder: store.recorder, blobs: store.blobs, queue: store.queue }
}
