/** Attempts in which the policy did nothing, or had not what its task gives it: never a number. And what MCP calls cost. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, searchEnvironment } from '../../src/envs/index.ts'
import { type RunOptions, type RunProgress, shellHarness } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, terminalTask, type World } from './world.ts'

const toolsList = `curl -sS "$PADDOCK_MCP_URL" -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`

/** A shell line that asks the model once. */
function asks(extra: object = {}): string {
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'ask of the test' }], ...extra })
  const filled = body.replace('{', '{"model":"\'"$OPENAI_MODEL"\'",')
  return `curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '${filled}'`
}

describe('an agent that the model never answered', () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
    await world.engine.control('/scripts', {
      instruction: 'ask of the test',
      candidates: [{ name: 'only', weight: 0, steps: [{ say: 'nothing to do' }] }],
    })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const cases: readonly [string, string, Partial<RunOptions>, object][] = [
    ['is done at once', 'true', {}, { end: 'completed', calls: 0 }],
    ['starts too slowly', 'sleep 60', { budgets: { agentMs: 1000 } }, { end: 'agent_timeout', calls: 0 }],
    ['has its budget used up before', asks(), { policy: { budget: budgetOf(1) } }, { end: 'budget', calls: 0 }],
    ['crashes', 'exit 3', {}, { end: 'harness_crash', calls: 0 }],
  ]
  test.each(cases)('%s: the verdict has no number', async (_, command, options, what) => {
    const { rollouts, groups } = await world.run({ tasks: [task], harness: shellHarness({ command }), ...options })
    expect(rollouts).toMatchObject([{ ...what, verdict: { status: 'unscorable', reward: null } }])
    expect(groups).toMatchObject([{ rewards: [], mean: null }])
  })

  test('asks, and every call is refused by the engine: no number either, and it is tried again', async () => {
    await world.engine.fault({ kind: 'http_error', status: 400, count: 1 })
    const { rollouts } = await world.run({ tasks: [task], harness: shellHarness({ command: asks() }), infraRetries: 1 })
    expect(rollouts).toMatchObject([
      { calls: 1, retried: true, taints: ['ENGINE_ERROR'], verdict: null },
      { calls: 1, retried: false, taints: [], verdict: { status: 'scored', reward: 0 } },
    ])
  })

  test.each([
    ['a title', 50],
    ['a look at its quota', 1],
  ])('is answered nothing but %s: no number either', async (_, limit) => {
    const command = asks({ max_tokens: limit }).replace('curl', 'curl -A opencode/1.0')
    const { rollouts } = await world.run({ tasks: [task], harness: shellHarness({ command }) })
    expect(rollouts).toMatchObject([{ end: 'completed', calls: 1, verdict: { status: 'unscorable', reward: null } }])
  })

  test('one that was answered and did nothing about it is scored 0', async () => {
    const { rollouts } = await world.run({ tasks: [task], harness: shellHarness({ command: asks() }) })
    expect(rollouts).toMatchObject([{ end: 'completed', calls: 1, verdict: { status: 'scored', reward: 0 } }])
  })
})

describe('tools over MCP', () => {
  let directory: string
  let world: World
  let environment: Environment
  let task: Task
  const query = { query: 'Mendvald Printing House founded by', topk: 2 }
  beforeAll(async () => {
    directory = tempDir()
    world = await openWorld()
    environment = searchEnvironment({ directory })
    ;[task] = (await environment.load(join(import.meta.dirname, '../../examples/tasks/search/q004'))) as [Task]
    await world.engine.control('/scripts', {
      instruction: 'ask of the test',
      candidates: [{ name: 'only', weight: 0, steps: [{ tool: 'search', args: query }, { say: 'done' }] }],
    })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  test('a harness that never asked for them worked without them: a fault, tried again, and no verdict', async () => {
    const harness = { ...shellHarness({ command: asks() }), listsTools: true }
    const { rollouts } = await world.run({ tasks: [task], environment, harness, infraRetries: 1 })
    expect(rollouts).toMatchObject([
      { end: 'infra', verdict: null, retried: true, detail: expect.stringContaining('HARNESS_TOOLS_UNLISTED') },
      { end: 'infra', verdict: null, retried: false },
    ])
  })

  test('one that asked for them and showed the model none is at fault too; one that showed them and called none is not', async () => {
    const listing = (body: object) => ({
      ...shellHarness({ command: `${toolsList} && ${asks(body)}` }),
      listsTools: true,
    })
    const hidden = await world.run({ tasks: [task], environment, harness: listing({}), infraRetries: 0 })
    expect(hidden.rollouts).toMatchObject([
      { end: 'infra', verdict: null, detail: expect.stringContaining('showed the model none of them') },
    ])
    const tool = { type: 'function', function: { name: 'search', parameters: { type: 'object' } } }
    const shown = await world.run({ tasks: [task], environment, harness: listing({ tools: [tool] }) })
    expect(shown.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 0 } }])
  })

  test('a call of them is traced to its answer without a read of the store, however many there are', async () => {
    const tool = {
      type: 'function',
      function: {
        name: 'search',
        parameters: {
          type: 'object',
          properties: { query: { type: 'string' }, topk: { type: 'integer' } },
          required: ['query'],
        },
      },
    }
    const command = `${asks({ tools: [tool] })} && for i in $(seq 20); do search --json '${JSON.stringify(query)}'; done`
    let reads = 0
    let inAgent = false
    const count = <A extends readonly unknown[], R>(read: (...args: A) => R) => {
      return (...args: A): R => {
        if (inAgent) reads += 1
        return read(...args)
      }
    }
    const { recorder } = world.store
    const store = {
      ...world.store,
      recorder: {
        ...recorder,
        appendEvent: (...args: Parameters<typeof recorder.appendEvent>) => recorder.appendEvent(...args),
        session: count((...args: Parameters<typeof recorder.session>) => recorder.session(...args)),
        sessions: count((...args: Parameters<typeof recorder.sessions>) => recorder.sessions(...args)),
        events: count((...args: Parameters<typeof recorder.events>) => recorder.events(...args)),
        flush: count(() => recorder.flush()),
      },
      catalogue: world.store.catalogue,
      blobs: world.store.blobs,
    }
    const onProgress = (progress: RunProgress): void => {
      if (progress.type === 'stage' && progress.stage === 'agent') inAgent = progress.phase === 'start'
    }
    const harness = shellHarness({ command })
    const { rollouts } = await world.run({ store, tasks: [task], environment, harness, onProgress, snapshotEvery: 5 })
    const events = await recorder.events({ rolloutId: rollouts[0]?.rolloutId ?? '' })
    const results = events.filter((event) => event.kind === 'tool_result')
    expect(results).toHaveLength(20)
    const [session] = await recorder.sessions({ rolloutId: rollouts[0]?.rolloutId ?? '' })
    const { calls } = await recorder.session(session?.id ?? '')
    expect(results.map(({ callId }) => callId)).toEqual([calls[0]?.intent.id, ...Array<null>(19).fill(null)])
    expect(reads).toBe(0)
  })
})

function budgetOf(maxWallMs: number) {
  return { maxCalls: null, maxSampledTokens: null, maxWallMs }
}
