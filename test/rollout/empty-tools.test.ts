/** An environment whose back end is down answers its tools with nothing and no error: the rollouts say so. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createProxy, type Proxy, vllmEngine } from '../../src/proxy/index.ts'
import { bareTask, defineHarness, runRollouts } from '../../src/rollout/index.ts'
import type { Store } from '../../src/trajectory/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import type { TestEngine } from '../proxy/support.ts'

let engine: TestEngine
let store: Store
let proxy: Proxy
beforeAll(async () => {
  engine = await useEngine()
  store = await useStore()
  proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engine.url }) })
})
afterAll(async () => {
  await proxy.close()
})

type Told = readonly [status: 'ok' | 'error', result: string]
const nothing: readonly Told[] = ['', ' \n', '""', '{}', '[]', 'null', 'None', '{"result":"","items":[]}'].map(
  (text) => ['ok', text],
)

it.each<readonly [string, readonly Told[], string | undefined]>([
  ['all of them, in each way to say nothing', nothing, '1.00'],
  ['half of them', [...nothing.slice(0, 3), ['ok', '0'], ['ok', 'false'], ['ok', '{"count":0}']], '0.50'],
  ['fewer than half', [...nothing.slice(0, 3), ['ok', 'a'], ['ok', 'b'], ['ok', 'c'], ['ok', 'd']], undefined],
  ['fewer than three', nothing.slice(0, 2), undefined],
  ['errors, which say what they are', nothing.map(() => ['error', '']), undefined],
  ['no results at all', [], undefined],
])('%s: the label tells the share', async (_what, results, share) => {
  const harness = defineHarness({
    name: 'tools',
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    place: 'host',
    box: 'none',
    run: async ({ emit }) => {
      for (const [at, [status, result]] of results.entries())
        emit({ kind: 'tool_result', callId: null, toolCallId: `${at}`, tool: 'look', status, durationMs: 1, result })
      return { end: 'completed', detail: 'done', answer: null }
    },
  })
  const task = bareTask({ name: 'look', instruction: 'Look around.' })
  const { rollouts } = await runRollouts({
    store,
    proxy,
    harness,
    sandbox: null,
    environment: null,
    model: 'scripted-hermes',
    tasks: [task],
  })
  const [rollout] = rollouts
  const { labels } = await store.catalogue.rollout(rollout?.rolloutId ?? '')
  expect(labels['empty_tool_results']).toBe(share)
  expect(rollout?.emptyToolResults?.toFixed(2)).toBe(share)
})
