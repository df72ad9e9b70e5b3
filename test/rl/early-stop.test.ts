/** Groups that stop early, over `/rl/v1` of a real `paddock serve`: who is kept, who goes on, and what the store has of them. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/here.ts'
import { serve as serveProcess, type Serving as ServingProcess } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Claim, type Json, talk, task, Trainer } from './trainer.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const hasDocker = await requireDocker()

let directory: string
let data: string
/** The first: a process of its own, which is killed. */
let killed: ServingProcess
let serving: Serving
let trainer: Trainer
let runs = 0

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  killed = await serveProcess(data)
  await use(killed)
})
afterAll(async () => {
  await serving.stop()
})

async function use(started: Serving): Promise<void> {
  serving = started
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

/** A run with one group, which is named by it. */
async function openGroup(spec: Json, more: Json = {}): Promise<string> {
  runs += 1
  const run = `run-${runs}`
  await trainer.ask('POST', '/runs', { run_id: run, ...more })
  await trainer.attach(run)
  await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: run, task, ...spec }] })
  return run
}
const claimed = async (run: string): Promise<Claim & { settled: Json }> => {
  const [claim] = await trainer.claim(run)
  if (claim === undefined) throw new Error('nothing has settled')
  return claim
}
const roundsOf = async (group: string) =>
  (await trainer.ask<{ rounds: readonly Json[] }>('GET', `/groups/${group}`)).rounds
const membersOf = async (group: string, { claim_id: claim, round }: Claim) =>
  (await trainer.rows(group, claim, round)).members.map(({ rollout_id: id, out }) => [id, out])

describe('a round that stops at so many usable members', () => {
  it('stops the others and keeps what they had, with the reason', async () => {
    const run = await openGroup({ n: 2, over: 1 })
    const [slow, ...fast] = [await trainer.open(run), await trainer.open(run), await trainer.open(run)]
    await talk(slow, 3)
    for (const one of fast) {
      await talk(one, 1)
      await trainer.end(one.rollout_id, 1)
    }
    expect(await trainer.ask('GET', `/rollouts/${slow.rollout_id}`)).toMatchObject({
      end: 'cancelled',
      end_detail: 'its group stopped early (usable)',
    })
    const claim = await claimed(run)
    const { rows, members } = await trainer.rows(run, claim.claim_id)
    const of = (id: string) => rows.find((row) => row.rollout_id === id)
    expect(of(slow.rollout_id)).toMatchObject({ usable: false, unusable_reason: 'censored', weight: 0 })
    expect(of(slow.rollout_id)?.turn_spans).toHaveLength(3)
    const member = members.find(({ rollout_id: id }) => id === slow.rollout_id)
    const sampled = of(slow.rollout_id)?.turn_spans.reduce((sum, [from = 0, to = 0]) => sum + to - from, 0)
    expect(member).toMatchObject({ out: 'censored', sampled_tokens: sampled })
    expect(claim.settled).toMatchObject({ stopped_by: 'usable', censored: { members: 1, sampled_tokens: sampled } })
    const kept = fast.map(({ rollout_id: id }) => of(id)?.trained_tokens_of.rollout ?? 0)
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({
      lengths: {
        kept: { members: 2, mean_tokens: (kept[0] ?? 0) / 2 + (kept[1] ?? 0) / 2, most_tokens: Math.max(...kept) },
        censored: { members: 1, mean_tokens: sampled, most_tokens: sampled },
      },
    })
  })
})

describe('a round that stops on rewards', () => {
  it.each([
    ['any_pass', [0, 1]],
    ['variance', [0.2, 0.4]],
  ])('says so where it stopped somebody: %s', async (how, rewards) => {
    const run = await openGroup({ n: 3, stop_when: how })
    const last = await trainer.open(run)
    for (const reward of rewards) {
      const one = await trainer.open(run)
      await talk(one, 1)
      await trainer.end(one.rollout_id, reward)
    }
    expect(await trainer.ask('GET', `/rollouts/${last.rollout_id}`)).toMatchObject({ end: 'cancelled' })
    const claim = await claimed(run)
    expect(claim.settled).toMatchObject({ stopped_by: how, outcome_stopped: true, usable: 2 })
    expect(await trainer.rows(run, claim.claim_id)).toMatchObject({ outcome_stopped: true })
    // All of its members are there: nothing was selected.
    const whole = await openGroup({ n: 2, stop_when: how })
    const both = [await trainer.open(whole), await trainer.open(whole)]
    for (const [at, one] of both.entries()) await trainer.end(one.rollout_id, rewards[at] ?? 0)
    expect((await claimed(whole)).settled).toMatchObject({ stopped_by: null, outcome_stopped: false, usable: 2 })
  })
})

describe('carry', () => {
  it('lets members go on into the round in which they end, also over a kill -9 of Paddock', async () => {
    const spec = { n: 1, stop_when: { usable: 1 }, carry: true }
    const run = await openGroup(spec)
    const [slow, slower, fast] = [await trainer.open(run), await trainer.open(run), await trainer.open(run)]
    for (const one of [slow, slower, fast]) await talk(one, 1)
    await trainer.end(fast.rollout_id, 1)
    expect(await roundsOf(run)).toMatchObject([{ state: 'settled', members: 3, usable: 1, carried: 2 }])
    const first = await claimed(run)
    expect(first.settled).toMatchObject({ members: 1, censored: { members: 0 }, carried: { members: 2 } })
    expect(await membersOf(run, first)).toEqual([[fast.rollout_id, null]])
    killed.kill('SIGKILL')
    await serving.ended
    await use(await serve(data))
    await talk({ ...slow, base_url: slow.base_url.replace(/^http:\/\/[^/]+/, serving.ready.inference) }, 2)
    await trainer.end(slow.rollout_id, 0.5)
    expect(await roundsOf(run)).toMatchObject([{ round: 0, usable: 1 }])
    expect(await trainer.ask('POST', `/groups/${run}/rounds`, spec)).toMatchObject({
      round: 1,
      state: 'settled',
      members: 2,
      usable: 1,
      carried: 1,
    })
    const second = await claimed(run)
    expect(await membersOf(run, second)).toEqual([[slow.rollout_id, null]])
    const { rows } = await trainer.rows(run, second.claim_id, 1)
    expect(rows.every(({ usable, trained_tokens_of: { row } }) => usable && row > 0)).toBe(true)
    // A slot of the next round has a number that no member has had.
    await trainer.ask('POST', `/groups/${run}/rounds`, { n: 2 })
    expect((await trainer.open(run)).slot).toBe(3)
    await trainer.end(slower.rollout_id, 1)
    expect(await roundsOf(run)).toMatchObject([{}, {}, { state: 'running', members: 2, carried: null }])
  })

  it('ends with a group that is cancelled, between two rounds too', async () => {
    const run = await openGroup({ n: 1, stop_when: { usable: 1 }, carry: true })
    const [slow, fast] = [await trainer.open(run), await trainer.open(run)]
    await trainer.end(fast.rollout_id, 1)
    expect(await trainer.ask('GET', `/rollouts/${slow.rollout_id}`)).toMatchObject({ end: null })
    await trainer.ask('POST', `/groups/${run}/cancel`, {})
    expect(await trainer.ask('GET', `/rollouts/${slow.rollout_id}`)).toMatchObject({ end: 'cancelled' })
    await trainer.ask('POST', `/groups/${run}/rounds`, { n: 1, min_usable: 0, deadline_s: 0.001 })
    expect(await membersOf(run, await claimed(run))).toEqual([[fast.rollout_id, null]])
  })

  it.runIf(hasDocker)('is refused where it would do nothing, or cannot be held', async () => {
    const asked = (more: Json) => ({ groups: [{ group_id: 'refused', task, n: 1, carry: true, ...more }] })
    const run = await openGroup({ n: 1 })
    expect(await trainer.refused('POST', `/runs/${run}/groups`, asked({}))).toEqual([400, 'GROUP_INVALID'])
    const gated = await openGroup({ n: 1 }, { staleness: { mode: 'gate' }, groups_per_step: 2 })
    const stopping = { stop_when: { usable: 1 } }
    expect(await trainer.refused('POST', `/runs/${gated}/groups`, asked(stopping))).toEqual([400, 'GROUP_INVALID'])
    await trainer.ask('POST', `/groups/${gated}/cancel`, {})
    const round = { n: 1, carry: true, ...stopping }
    expect(await trainer.refused('POST', `/groups/${gated}/rounds`, round)).toEqual([400, 'GROUP_INVALID'])
    const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))
    await trainer.ask('POST', '/runs', { run_id: 'own', tasks })
    const ofTask = asked({ ...stopping, task: 'log-forensics' })
    expect(await trainer.refused('POST', '/runs/own/groups', ofTask)).toEqual([400, 'GROUP_INVALID'])
  })
})
