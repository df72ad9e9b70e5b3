import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { newId, type Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import {
  endInterrupted,
  isUnverified,
  referenceAgent,
  rescoreRollouts,
  type RunProgress,
  runRollouts,
  type RunSummary,
} from '../../src/rollout/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { openReader, openStore, type RolloutView, type Store, verdictInForce } from '../../src/trajectory/index.ts'
import { atEnd } from '../fixtures/at-end.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type TestEngine } from '../proxy/support.ts'
import { model, terminalTask, waitingFor } from './world.ts'

let engine: TestEngine
let directory: string
let tasks: readonly Task[]
beforeAll(async () => {
  // A process: tests here ask the store in a loop that lets nothing else of this process run.
  const started = await startEngine('--model', model)
  atEnd(() => started.stop())
  engine = started
  directory = tempDir()
  tasks = [await terminalTask('log-forensics'), await terminalTask('git-archaeology')]
  for (const task of tasks) {
    const { steps } = (await terminal.scripts.oracle(task)).script
    await engine.control('/scripts', {
      instruction: task.instruction,
      candidates: [{ name: 'only', weight: 0, steps }],
    })
  }
})

/** Goes on with the run in this process; the ids of the rollouts whose agents it started. */
async function resumed(store: Store, sandbox: SandboxProvider, runId: string) {
  const agents = new Set<string>()
  const onProgress = (progress: RunProgress): void => {
    if (progress.type === 'stage' && progress.stage === 'agent') agents.add(progress.rolloutId)
  }
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engine.url }) })
  const common = { store, proxy, sandbox, environment: terminal, tasks, harness: referenceAgent(), model, n: 2 }
  const summary = await runRollouts({ ...common, runId, resume: true, onProgress })
  await proxy.close()
  return { summary, agents }
}

/** Every member is there exactly once, scored 1. */
function expectWhole(rollouts: readonly RolloutView[], summary: RunSummary): void {
  const members = rollouts.filter(({ end }) => end !== 'infra' && end !== 'cancelled')
  expect(new Set(members.map(({ groupId, slot }) => `${groupId} ${slot}`)).size).toBe(4)
  expect(members).toHaveLength(4)
  expect(members.map(({ end, verdicts }) => [end, verdicts.length, verdictInForce(verdicts)?.reward])).toEqual(
    members.map(() => ['completed', 1, 1]),
  )
  expect(summary.groups.map(({ size, rewards }) => [size, rewards])).toEqual([
    [2, [1, 1]],
    [2, [1, 1]],
  ])
}

test('a run that was killed with kill -9 goes on: no agent that was done works again, and each member is there once', async () => {
  const data = join(directory, 'killed')
  const runId = newId()
  const runner = join(import.meta.dirname, 'resume-runner.ts')
  const file = join(directory, 'never')
  const child = spawn(process.execPath, [runner, data, engine.url, runId, file], { stdio: 'inherit' })
  await opened(data)
  let left: readonly RolloutView[] = []
  while (left.length < 3) {
    await using reader = await openReader(data)
    left = (await reader.catalogue.rollouts({ runId })).filter(isUnverified)
  }
  child.kill('SIGKILL')
  await once(child, 'exit')

  await using store = await openStore(data)
  await using sandbox = dockerProvider()
  await endInterrupted(store)
  const before = await store.catalogue.rollouts({ runId })
  const kept = before.filter(isUnverified).map(({ id }) => id)
  expect(kept).toEqual(expect.arrayContaining(left.map(({ id }) => id)))
  const { summary, agents } = await resumed(store, sandbox, runId)
  expect(agents.size).toBe(4 - kept.length)
  const after = await store.catalogue.rollouts({ runId })
  expectWhole(after, summary)
  expect(after.filter(({ end }) => end === 'completed').map(({ id }) => id)).toEqual(expect.arrayContaining(kept))

  const events = await store.catalogue.runEvents(runId, { after: 0, limit: 99 })
  const settled = events.filter(({ kind }) => kind === 'group_settled').map(({ data }) => data['groupId'])
  expect(settled).toHaveLength(2)
  expect(new Set(settled)).toEqual(new Set(summary.groups.map(({ groupId }) => groupId)))
  expect(summary.groups.map((group) => group.settled?.usable)).toEqual([2, 2])

  // A second time there is nothing left to do.
  const again = await resumed(store, sandbox, runId)
  expect(again.agents.size).toBe(0)
  expect(await store.catalogue.rollouts({ runId })).toEqual(after)
  expect(again.summary.groups).toEqual(summary.groups)
})

test('a run that is cancelled leaves the work of its agents unverified; rescore verifies it, and so does the run', async () => {
  await using store = await openStore(join(directory, 'cancelled'))
  await using sandbox = dockerProvider()
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engine.url }) })
  const cancel = new AbortController()
  let collected = 0
  const cancelled = await runRollouts({
    store,
    proxy,
    sandbox,
    environment: waitingFor(join(directory, 'never'), terminal),
    tasks,
    harness: referenceAgent(),
    model,
    n: 2,
    limits: { agent: 1, boot: 1, verify: 1 },
    signal: cancel.signal,
    onProgress: (progress) => {
      // In the middle of what the second agent left: it is taken to its end.
      if (progress.type !== 'stage' || progress.stage !== 'collect' || progress.phase !== 'start') return
      collected += 1
      if (collected === 2) cancel.abort(new Error('Ctrl-C'))
    },
  })
  const { runId } = cancelled
  const left = cancelled.rollouts.filter(({ unverified }) => unverified)
  expect(left).toHaveLength(2)
  expect(left).toMatchObject(left.map(() => ({ end: 'completed', verdict: null })))
  // The fourth may wait as a job while the first one's box is going: nobody began it, and there is no rollout of it.
  expect([1, 2]).toContain(cancelled.rollouts.filter(({ end }) => end === 'cancelled').length)
  expect((await store.catalogue.rollouts({ runId })).filter(isUnverified)).toHaveLength(2)

  const [first] = (await store.catalogue.rollouts({ runId })).filter(isUnverified)
  const o = { store, environment: () => terminal, sandbox, signal: new AbortController().signal }
  const rollouts = first === undefined ? [] : [first]
  expect(await rescoreRollouts({ ...o, rollouts, dryRun: true })).toMatchObject([{ outcome: 'verified' }])
  expect((await store.catalogue.rollouts({ runId })).filter(isUnverified)).toHaveLength(2)
  const [verified] = await rescoreRollouts({ ...o, rollouts })
  expect(verified).toMatchObject({ outcome: 'verified', after: { reward: 1 } })

  const { summary, agents } = await resumed(store, sandbox, runId)
  expect(agents.size).toBe(2)
  expectWhole(await store.catalogue.rollouts({ runId }), summary)
  await proxy.close()
})

async function opened(data: string): Promise<void> {
  for (;;) {
    const reader = await openReader(data).catch(() => null)
    if (reader === null) continue
    await reader.close()
    return
  }
}
