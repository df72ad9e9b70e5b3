/**
 * Agents in boxes are put aside in the middle of an answer, twice, and each time the weights change meanwhile: all finish, each token
 * has the weights that sampled it, and neither a harness nor a clock notices.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { newId } from '../../src/core/index.ts'
import { Shelving, shellHarness } from '../../src/rollout/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { buildRows, type RolloutView } from '../../src/trajectory/index.ts'
import { containersOf, model, openOwnWorld, terminalTask, type World } from '../rollout/world.ts'
import { heldMs, shelvedOf, stageMs } from './shelve-events.ts'
import { sized } from './size.ts'

/** Twice what may work at once, so that all of them are half done only if places are given back. */
const count = sized(32, 8)
const places = count / 2
/** Tokens of a leg before it stands still. */
const legTokens = 3
const calls = 3

describe.runIf(await requireDocker())(`${count} half-done rollouts over two updates of the weights`, () => {
  let world: World
  let task: Task
  beforeAll(async () => {
    world = await openOwnWorld()
    task = await terminalTask('log-forensics')
    await world.script(task, [{ say: 'one two three four five six seven eight nine ten eleven twelve' }])
  })
  afterAll(() => world[Symbol.asyncDispose]())

  it('all finish, spans are exact, no clock ran and no harness saw an error', async () => {
    const { proxy, engine, store } = world
    const shelving = new Shelving()
    const runId = newId()
    const prompt = JSON.stringify(task.instruction)
    const body = `{"model":"${model}","stream":true,"messages":[{"role":"user","content":${prompt}}]}`
    const ask = `curl -sSN --fail "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d @/tmp/body`
    const command = `cat > /tmp/body <<'JSON'\n${body}\nJSON\nfor i in $(seq ${calls}); do ${ask} > /tmp/said || exit 9; grep -q DONE /tmp/said || exit 8; done`
    // Every generation stands still after a few tokens, until it is ended.
    await engine.fault({ kind: 'stall', at: 'mid_stream', token: legTokens, seconds: 600, count: 100_000 })
    const ended = world.run({
      runId,
      tasks: [task],
      n: count,
      harness: shellHarness({ command }),
      limits: { agent: places, boot: 2 },
      shelving,
    })
    let over = false
    void ended.finally(() => (over = true))

    /** So many agents wait in the middle of an answer. */
    const midway = async (): Promise<void> => {
      for (;;) {
        if (proxy.engineStatus().replicas.reduce((sum, { inFlight }) => sum + inFlight, 0) === places) return
        if (over) throw new Error('the run is over')
        await nextTurn()
      }
    }
    const shelveAll = async (): Promise<void> => {
      const working = shelving.ofRun(runId).filter((id) => shelving.stateOf(id) === 'working')
      await Promise.all(working.map((id) => shelving.shelve(id, 'new weights')))
    }
    for (const version of ['w1', 'w2']) {
      // Those that work, then those that took their places.
      for (const _half of [0, 1]) {
        await midway()
        await shelveAll()
      }
      expect(shelving.ofRun(runId).map((id) => shelving.stateOf(id))).toEqual(Array(count).fill('shelved'))
      await proxy.updateWeights({ version, requests: [], mode: 'drain', cache: 'clear', timeoutMs: 300_000 })
      if (version === 'w2') await fetch(`${engine.url}/control/faults`, { method: 'DELETE' })
      for (const id of shelving.ofRun(runId)) shelving.resume(id)
    }
    const { rollouts, leftovers } = await ended
    expect(leftovers).toEqual([])
    expect(rollouts.map(({ end, detail, taints, calls: made }) => ({ end, detail, taints, made }))).toEqual(
      Array(count).fill({ end: 'completed', detail: 'exit 0', taints: [], made: calls }),
    )
    for (const { rolloutId, agentMs } of rollouts) {
      const rollout = await store.catalogue.rollout(rolloutId)
      const events = await store.recorder.events({ rolloutId })
      expect(shelvedOf(events)).toEqual(['shelved 1', 'resumed 0', 'shelved 1', 'resumed 0'])
      expect(agentMs).toBeLessThan(stageMs(events) - heldMs(events))
      await spansAreExact(rollout)
    }
    expect(containersOf(runId)).toEqual([])
  })

  /** The first answer came in three legs, each of the weights that there were; what the engine says it sampled is what is stored. */
  async function spansAreExact({ id }: RolloutView): Promise<void> {
    const [session] = await world.store.recorder.sessions({ rolloutId: id })
    const log = await world.store.recorder.session(session?.id ?? '')
    expect(log.calls.flatMap(({ commit }) => commit?.findings ?? [])).toEqual([])
    expect(log.calls.map(({ commit }) => commit?.outcome.kind)).toEqual(Array(calls).fill('complete'))
    const [first] = log.segments.filter(({ origin }) => origin === 'sampled')
    const callId = first?.callId ?? ''
    const legs = await Promise.all(['', '.2', '.3'].map((leg) => world.engine.generation(`${callId}${leg}`)))
    const told = legs.map(({ choices }) => choices[0]?.tokenIds ?? [])
    expect([...(first?.tokens ?? [])]).toEqual(told.flat())
    let at = 0
    const expected = told.flatMap((ids, leg) => {
      const start = at
      at += ids.length
      // Of a leg that was ended before its first token there is nothing to say.
      return ids.length === 0 ? [] : [[start, at, leg === 0 ? expect.any(String) : `w${leg}`, 'none']]
    })
    const spans = first?.policySpans.map(({ start, end, policy, mixing }) => [start, end, policy.weightVersion, mixing])
    expect(spans).toEqual(expected)
    // Every sampled token trains, once.
    const { rows } = buildRows(log, { rolloutId: id, groupId: 'g', taskDigest: 't' })
    const sampled = log.segments.reduce((sum, one) => sum + (one.origin === 'sampled' ? one.tokens.length : 0), 0)
    expect(rows.reduce((sum, { mask }) => sum + mask.reduce((bits, bit) => bits + bit, 0), 0)).toBe(sampled)
  }
})
