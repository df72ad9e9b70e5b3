/** A real model behind a real vLLM learns from what Paddock recorded, through a harness that knows of neither. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Classroom, doors, type Learned, learn, openClassroom } from '../../scripts/learn.ts'
import { fsck, openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { cache } from './vllm.ts'

const steps = 50

describe.skipIf(cache === '')('a model of two million parameters', () => {
  let room: Classroom
  let learned: Learned
  let data: string
  beforeAll(async () => {
    data = tempDir()
    room = await openClassroom(cache, doors)
    learned = await learn(room, { name: 'doors', data, seed: 1, steps, lag: 1, control: false })
    console.log(`doors: ${learned.before} before, ${learned.after} after, p ${learned.p}, ${learned.seconds} s`)
  }, 1_200_000)
  afterAll(async () => {
    await room?.[Symbol.asyncDispose]()
  })

  it('opens the right doors of clues that it was never trained on', () => {
    expect(learned.tasks).toBe(128)
    expect(learned.p).toBeLessThan(0.01)
    expect(learned.after - learned.before).toBeGreaterThanOrEqual(0.3)
  })

  it('was sampled, at every step, by the very weights that its trainer computes with', () => {
    expect(learned.steps.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, step) => step))
    expect(Math.max(...learned.steps.map(({ mismatch }) => mismatch.p99))).toBeLessThanOrEqual(1e-3)
    // Nothing is compared at a step whose rows are all of older weights.
    expect(learned.steps.filter(({ mismatch }) => mismatch.max > 0).length).toBeGreaterThan(steps / 2)
    expect(Math.max(...learned.steps.map(({ values }) => values['age'] ?? 0))).toBe(1)
  })

  it('has other weights than before', async () => {
    const before = await readFile(join(room.base, 'model.safetensors'))
    const after = await readFile(join(room.served, 'model.safetensors'))
    expect(after.byteLength).toBe(before.byteLength)
    expect(after.equals(before)).toBe(false)
  })

  it('was trained on no token twice; every round is disposed of, every version announced', async () => {
    await using store = await openStore(data)
    expect(await store.trainer.counts('doors')).toMatchObject({
      running: 0,
      settledUnclaimed: 0,
      claimed: 0,
      stale: 0,
      failed: 0,
    })
    const versions = await store.trainer.versions('doors')
    expect(versions.map(({ ordinal }) => ordinal)).toEqual(Array.from({ length: steps + 1 }, (_, at) => at))
    const trained = learned.trained.filter(([, , tokens]) => tokens > 0).map(([, call]) => call)
    expect(new Set(trained).size).toBe(trained.length)
    const sampled = new Map<string, number>()
    for (const { id: groupId } of await store.catalogue.groups('doors')) {
      for (const { id: rolloutId } of await store.catalogue.rollouts({ groupId })) {
        for (const { id } of await store.recorder.sessions({ rolloutId })) {
          const { segments } = await store.recorder.session(id)
          for (const { callId, origin, tokens } of segments) {
            if (callId !== null && origin === 'sampled') sampled.set(callId, tokens.length)
          }
        }
      }
    }
    // All that was sampled came to the trainer, whole; in rows that share a call, one of them trains it.
    const came = new Map<string, number>()
    for (const [, call, tokens] of learned.trained) came.set(call, (came.get(call) ?? 0) + tokens)
    expect([...sampled].filter(([call, tokens]) => came.get(call) !== tokens)).toEqual([])
    expect(came.size).toBe(sampled.size)
    expect((await fsck(data)).problems).toEqual([])
  })
})
