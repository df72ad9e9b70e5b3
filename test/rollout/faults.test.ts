import { spawnSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newId, type Task } from '../../src/core/index.ts'
import { referenceAgent, type RunProgress, shellHarness } from '../../src/rollout/index.ts'
import { dockerInspector, dockerProvider } from '../../src/sandbox/index.ts'
import { containersOf, openOwnWorld, terminalTask, type World } from './world.ts'

describe('what is not the fault of the agent', () => {
  let world: Awaited<ReturnType<typeof openOwnWorld>>
  let task: Task

  beforeEach(async () => {
    world = await openOwnWorld()
    task = await terminalTask('log-forensics')
  })
  afterEach(() => world[Symbol.asyncDispose]())

  test('an engine that dies in the middle ends every attempt as infra, tainted, without any number', async () => {
    const command = 'until [ -e /workspace/go ]; do sleep 0.05; done'
    await world.script(task, [{ shell: 'echo begun' }, { shell: command }, { say: 'never said' }])
    const runId = newId()
    const summary = await world.run({
      runId,
      tasks: [task],
      harness: referenceAgent(),
      infraRetries: 1,
      onProgress: afterTool(world, async () => {
        await world.engine.kill()
        const inspector = dockerInspector()
        const agent = (await inspector.list()).find((box) => box.run === runId && box.role === 'agent')
        if (agent !== undefined) await inspector.putFiles(agent, '/workspace', [{ path: 'go', data: '' }])
      }),
    })
    expect(summary.rollouts).toMatchObject([
      { attempt: 0, end: 'infra', verdict: null, retried: true },
      { attempt: 1, end: 'infra', verdict: null, retried: false },
    ])
    expect(summary.rollouts[0]?.calls).toBeGreaterThan(0)
    expect(summary.rollouts[0]?.taints).not.toEqual([])
    expect(summary.groups).toMatchObject([{ size: 1, rewards: [], mean: null, ends: { infra: 1 } }])
    const view = await world.store.catalogue.rollout(summary.rollouts[0]?.rolloutId ?? '')
    expect(view).toMatchObject({ end: 'infra', verdicts: [], taints: summary.rollouts[0]?.taints })
  })

  test('an engine that fails once, and answers when the harness asks again, leaves a rollout that counts', async () => {
    await world.script(task, [{ shell: 'true' }, { say: 'nothing done' }])
    await world.engine.fault({ kind: 'http_error', status: 500, count: 1 })
    const summary = await world.run({ tasks: [task], harness: referenceAgent() })
    expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 0 } }])
    expect(summary.rollouts[0]?.taints).toEqual([])
    expect(summary.groups).toMatchObject([{ rewards: [0], mean: 0 }])
    const [session] = await world.store.recorder.sessions({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
    const { events, calls } = await world.store.recorder.session(session?.id ?? '')
    expect(events.filter(({ kind }) => kind === 'taint')).toHaveLength(1)
    expect(calls[1]?.intent.retryOf).toBe(calls[0]?.intent.id)
  })

  test('a box that dies under the agent is infra, and the next attempt is a new rollout of the same slot', async () => {
    await world.script(task, [{ shell: 'sleep 3' }, { say: 'done' }])
    const runId = newId()
    let killed = false
    const summary = await world.run({
      runId,
      tasks: [task],
      harness: referenceAgent(),
      onProgress: (progress) => {
        if (killed || progress.type !== 'stage' || progress.stage !== 'agent') return
        killed = true
        removeContainers(runId)
      },
    })
    expect(summary.rollouts).toMatchObject([
      { slot: 0, attempt: 0, end: 'infra', verdict: null, retried: true },
      { slot: 0, attempt: 1, end: 'completed', verdict: { reward: 0 }, retried: false },
    ])
  })

  test('a harness that crashes before its first call is not scored', async () => {
    const summary = await world.run({
      tasks: [task],
      harness: shellHarness({ command: 'echo no such thing >&2; exit 3' }),
    })
    expect(summary.rollouts).toMatchObject([
      {
        end: 'harness_crash',
        detail: 'exit 3: no such thing',
        calls: 0,
        verdict: { status: 'unscorable', reward: null },
      },
    ])
  })

  test('without Docker nothing is begun: one error says what is missing', async () => {
    await using nowhere = dockerProvider({ socketPath: '/nonexistent/docker.sock' })
    const run = world.run({ sandbox: nowhere, tasks: [task], harness: referenceAgent() })
    await expect(run).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' })
    await expect(world.run({ sandbox: null, tasks: [task], harness: referenceAgent() })).rejects.toMatchObject({
      code: 'HARNESS_INVALID',
    })
    expect(await world.store.catalogue.runs()).toEqual([])
  })

  test('a run that is cancelled before it begins is recorded as such', async () => {
    const summary = await world.run({ tasks: [task], harness: referenceAgent(), signal: AbortSignal.abort() })
    expect(summary).toMatchObject({ cancelled: true, rollouts: [], groups: [{ size: 0, settled: null }] })
    // Whoever goes on with it finds its members waiting.
    expect(await world.store.queue.jobs({ runId: summary.runId })).toMatchObject([{ state: 'ready', attempt: 0 }])
  })

  test('a cancelled run keeps what it has and leaves no container', async () => {
    await world.script(task, [{ shell: 'echo begun' }, { shell: 'sleep 600' }])
    const runId = newId()
    const cancel = new AbortController()
    const summary = await world.run({
      runId,
      tasks: [task],
      harness: referenceAgent(),
      n: 3,
      limits: { agent: 1, boot: 1 },
      signal: cancel.signal,
      onProgress: afterTool(world, async () => cancel.abort(new Error('Ctrl-C'))),
    })
    expect(summary.cancelled).toBe(true)
    expect(summary.rollouts.map(({ end, verdict }) => [end, verdict])).toEqual([1, 2, 3].map(() => ['cancelled', null]))
    expect(summary.rollouts[0]?.calls).toBe(2)
    expect(summary.leftovers).toEqual([])
    expect(containersOf(runId)).toEqual([])
    const [session] = await world.store.recorder.sessions({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
    const log = await world.store.recorder.session(session?.id ?? '')
    expect(log.closedAt).not.toBeNull()
    expect(log.calls.every(({ commit }) => commit?.outcome.kind === 'complete')).toBe(true)
  })
})

/** Acts once, when the first agent's second call has been answered and its command runs. */
function afterTool(world: World, act: () => Promise<unknown>): (progress: RunProgress) => void {
  let done = false
  return (progress) => {
    if (done || progress.type !== 'stage' || progress.stage !== 'agent' || progress.phase !== 'start') return
    done = true
    void (async () => {
      const { rolloutId } = progress
      for (;;) {
        const [session] = await world.store.recorder.sessions({ rolloutId })
        const log = session === undefined ? null : await world.store.recorder.session(session.id)
        if ((log?.calls.filter(({ commit }) => commit !== null).length ?? 0) >= 2) break
      }
      await act()
    })()
  }
}

function removeContainers(runId: string): void {
  spawnSync('docker', ['rm', '-f', ...containersOf(runId)])
}
