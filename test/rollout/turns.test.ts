import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import Docker from 'dockerode'
import { newId, type Task } from '../../src/core/index.ts'
import { followEngine, policyPause, referenceAgent, type RunSummary, shellHarness } from '../../src/rollout/index.ts'
import { dockerInspector } from '../../src/sandbox/index.ts'
import { containerEvents } from '../../src/testing/sandbox/index.ts'
import { openWorld, terminalTask, type World } from './world.ts'

describe('boxes of agents at their turns, and in pauses of the engine', () => {
  let world: World
  let task: Task

  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
  })
  afterAll(() => world[Symbol.asyncDispose]())

  /** The snapshots of the only rollout: after which of its calls, and what `file` holds in a box that is started from it. */
  async function snapshotsOf(summary: RunSummary, file: string) {
    const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
    const events = await world.store.recorder.events({ rolloutId })
    const [session] = await world.store.recorder.sessions({ rolloutId })
    const { calls } = await world.store.recorder.session(session?.id ?? '', { bodies: [] })
    const order = calls.map(({ intent }) => intent.id)
    expect(events.filter((event) => event.kind === 'label')).toEqual([])
    const taken = events.filter((event) => event.kind === 'snapshot')
    return Promise.all(
      taken.map(async ({ image, callId }) => {
        await using box = await world.sandbox.createBox({ image, profile: 'user', labels: { role: 'probe' } })
        const { stdout } = await box.exec({ command: ['cat', file] })
        return { call: callId === null ? -1 : order.indexOf(callId), holds: Buffer.from(stdout).toString() }
      }),
    )
  }

  test('the box is kept after each turn, named with its call, and a fork starts with the files of that turn', async () => {
    await world.script(task, [
      { shell: 'echo one > /workspace/turns' },
      { shell: 'echo two >> /workspace/turns' },
      { say: 'done' },
    ])
    const summary = await world.run({ tasks: [task], harness: referenceAgent(), snapshotEvery: 1 })
    expect(summary.rollouts).toMatchObject([{ end: 'completed' }])
    expect(await snapshotsOf(summary, '/workspace/turns')).toEqual([
      { call: 0, holds: 'one\n' },
      { call: 1, holds: 'one\ntwo\n' },
    ])
  })

  test('so is the box of a black box, which knows nothing of it, at every second of its turns', async () => {
    await world.script(task, [{ say: 'go on' }])
    const body =
      '{\\"model\\":\\"$OPENAI_MODEL\\",\\"messages\\":[{\\"role\\":\\"user\\",\\"content\\":\\"turn $i\\"}]}'
    const ask = `curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d "${body}" > /dev/null`
    const command = `for i in 1 2 3 4 5; do ${ask} || exit 9; echo $i >> /workspace/turns; done`
    const summary = await world.run({ tasks: [task], harness: shellHarness({ command }), snapshotEvery: 2 })
    expect(summary.rollouts).toMatchObject([{ end: 'completed', calls: 5 }])
    expect(await snapshotsOf(summary, '/workspace/turns')).toEqual([
      { call: 1, holds: '1\n2\n' },
      { call: 3, holds: '1\n2\n3\n4\n' },
    ])
  })

  test('a pause of the policy stops box and clock of an agent, and nothing is lost', async () => {
    const pause = policyPause(world.sandbox)
    const runId = newId()
    // The agent does not end before the pause is over.
    const command = 'until [ -e /workspace/go ]; do sleep 0.05; done'
    const running = Promise.withResolvers<void>()
    // A day passes while it is paused: no machine is as slow as that.
    const day = 86_400_000
    let passedMs = 0
    const clock = { now: Date.now, monotonic: () => performance.now() + passedMs }
    const ended = world.run({
      runId,
      clock,
      tasks: [task],
      harness: shellHarness({ command }),
      policyPause: pause,
      onProgress: (one) => {
        if (one.type === 'stage' && one.stage === 'agent' && one.phase === 'start') running.resolve()
      },
    })
    await running.promise
    const held = await pause.begin()
    passedMs += day
    await held[Symbol.asyncDispose]()
    const inspector = dockerInspector()
    const agent = (await inspector.list()).find((box) => box.run === runId && box.role === 'agent')
    if (agent === undefined) throw new Error('no box of the agent')
    await inspector.putFiles(agent, '/workspace', [{ path: 'go', data: '' }])
    const [rollout] = (await ended).rollouts
    expect(rollout).toMatchObject({ end: 'completed' })
    const events = await world.store.recorder.events({ rolloutId: rollout?.rolloutId ?? '' })
    const stage = events.find((event) => event.kind === 'stage' && event.stage === 'agent' && event.phase === 'end')
    expect(stage?.kind === 'stage' ? stage.durationMs : null).toBeGreaterThan(day)
    expect(rollout?.agentMs).toBeLessThan(day)
  })

  test('a pause of the engine, as the proxy tells of it, holds the boxes until it is over, however soon that is', async () => {
    const image = await world.sandbox.ensureImage({ kind: 'paddock-base' })
    await using box = await world.sandbox.createBox({ image, profile: 'user', labels: { role: 'agent' } })
    const docker = new Docker()
    const state = async () => (await docker.getContainer(box.id).inspect()).State.Status
    await using events = await containerEvents({ container: [box.id], event: ['pause', 'unpause'] })
    const told = async (count: number): Promise<string[]> => {
      const seen: string[] = []
      while (seen.length < count) {
        const next = await Promise.race([events.next(), missed.promise])
        seen.push(next.value?.status ?? 'no more')
      }
      return seen
    }
    const missed = Promise.withResolvers<never>()
    missed.promise.catch(() => undefined)
    const follow = followEngine(policyPause(world.sandbox), ({ why }) => missed.reject(why))
    follow('paused')
    follow('paused')
    expect(await told(1)).toEqual(['pause'])
    expect(await state()).toBe('paused')
    follow('weights')
    follow('resumed')
    expect(await told(1)).toEqual(['unpause'])
    follow('resumed')
    follow('paused')
    follow('resumed')
    expect(await told(2)).toEqual(['pause', 'unpause'])
    expect(await box.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
  })

  test('the box of the verifier is made while the agent works', async () => {
    const runId = newId()
    const label = [`paddock.run=${runId}`, 'paddock.role=verifier']
    await using events = await containerEvents({ event: ['start'], label })
    const inspector = dockerInspector()
    // The agent does not end before the box of its verifier has started.
    const ended = world.run({
      runId,
      tasks: [task],
      harness: shellHarness({
        command: `until [ -e /workspace/go ]; do sleep 0.05; done; curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '{"model":"'$OPENAI_MODEL'","messages":[{"role":"user","content":"x"}]}'`,
      }),
    })
    await events.next()
    const agent = (await inspector.list()).find((box) => box.run === runId && box.role === 'agent')
    if (agent === undefined) throw new Error('no box of the agent')
    await inspector.putFiles(agent, '/workspace', [{ path: 'go', data: '' }])
    expect((await ended).rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 0 } }])
  })
})
