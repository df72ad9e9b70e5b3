/** A run that asks for its own groups, on a real `paddock serve` with real boxes; both sides are killed. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Claim, type Json, type JsonRound, Trainer } from './trainer.ts'

const published = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
let directory: string
let tasks: string
let data: string
let serving: Serving
let trainer: Trainer

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  tasks = join(directory, 'tasks')
  for (const name of ['a', 'b', 'c']) {
    await cp(published, join(tasks, name), { recursive: true })
    // A task is told from others by what it holds.
    await writeFile(join(tasks, name, 'tests', 'name'), name)
  }
  await start()
})
afterAll(async () => {
  await serving.stop()
})

async function start(): Promise<void> {
  serving = await serve(data)
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

const asked = (more: Json = {}) => ({
  tasks,
  feed: [{ set: 'train', n: 1 }],
  seed: 7,
  capacity: { groups: 1 },
  ...more,
})
const drawn = async (run: string) => (await trainer.ask<{ feed: { drawn: number } }>('GET', `/runs/${run}`)).feed.drawn

/** The next round of a run with its rows. */
async function next(run: string, incarnation: number): Promise<{ claim: Claim; round: JsonRound }> {
  for (;;) {
    const [claim] = await trainer.claim(run, { wait_s: 60, incarnation })
    if (claim !== undefined) return { claim, round: await trainer.rows(claim.group_id, claim.claim_id) }
  }
}

async function train(run: string, { rows }: JsonRound, step: number, incarnation: number): Promise<void> {
  const said = rows.map((row) => ({ row: row.row_id, step, outcome: 'used', advantage: 1, reward_used: 1 }))
  await trainer.dispose(run, said, incarnation)
}

describe('a run with a feed', () => {
  it('is refused by what is wrong with it', async () => {
    const refused = (more: Json) => trainer.refused('POST', '/runs', asked(more))
    expect(await refused({ feed: [{ set: 'nothing', n: 1 }] })).toEqual([400, 'CONFIG_INVALID'])
    expect(await refused({ feed: [{ set: 'test', n: 1 }] })).toEqual([409, 'TASK_HELD_OUT'])
    for (const wrong of [
      { capacity: null },
      { feed: [] },
      { feed: undefined },
      { tasks: undefined },
      { feed: [{ set: 'train', n: 0 }] },
      {
        feed: [
          { set: 'train', n: 1 },
          { set: 'train', n: 2 },
        ],
      },
    ])
      expect(await refused(wrong)).toEqual([400, 'BODY_INVALID_SHAPE'])
  })

  it('asks for groups in one order, goes on after kills of either side, and asks again for what was lost', async () => {
    await trainer.ask('POST', '/runs', asked({ run_id: 'fed' }))
    // Nobody is there who would train on it.
    expect(await drawn('fed')).toBe(0)
    await trainer.attach('fed')
    const zero = await next('fed', 1)
    expect(zero.claim.group_id).toBe('fed.feed.0')
    expect(await drawn('fed')).toBe(1)

    // What follows is sampled by weights that the first step has made.
    await trainer.ask('POST', '/runs/fed/policy', { incarnation: 1, version: 1, phase: 'pausing' })
    await train('fed', zero.round, 1, 1)
    await trainer.ask('POST', '/runs/fed/policy', { incarnation: 1, version: 1, phase: 'live', step: 1 })
    const one = await next('fed', 1)
    expect(one.claim.group_id).toBe('fed.feed.1')
    expect(one.round.task.name).not.toBe(zero.round.task.name)

    // Both die, and the trainer has no checkpoint: the first group comes again, the second is of weights that are gone.
    serving.kill('SIGKILL')
    await serving.ended
    await start()
    const incarnation = await trainer.attach('fed')
    const again = await next('fed', incarnation)
    expect(again.claim).toMatchObject({ group_id: 'fed.feed.0', again: true })
    await trainer.ask('POST', '/runs/fed/policy', { incarnation, version: 1, phase: 'live', step: 1 })
    await train('fed', again.round, 1, incarnation)
    // It begins the group that was lost, and is killed on it.
    const begun = async () => (await trainer.send('GET', `/groups/fed.feed.1.${incarnation}`)).status
    while ((await begun()) !== 200);
    serving.kill('SIGKILL')
    await serving.ended
    await start()
    const lost = await next('fed', incarnation)
    expect(lost.claim.group_id).toBe(`fed.feed.1.${incarnation}`)
    expect(lost.round.task).toEqual(one.round.task)
    await train('fed', lost.round, 2, incarnation)
    const two = await next('fed', incarnation)
    expect(two.claim.group_id).toBe('fed.feed.2')
    expect(await drawn('fed')).toBe(3)
    const names = [zero, one, two].map(({ round }) => round.task.name)
    expect(names.toSorted()).toEqual(['a', 'b', 'c'])
    await trainer.ask('POST', '/runs/fed/close', {})

    // The same seed is the same order.
    await trainer.ask('POST', '/runs', asked({ run_id: 'twin' }))
    await trainer.attach('twin')
    expect((await next('twin', 1)).round.task.name).toBe(names[0])
  })
})
