/** A trainer's groups whose rollouts Paddock does: submitted over `/rl/v1` to a real `paddock serve`, with real boxes. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Claim, type Json, Trainer } from './trainer.ts'

const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))
let directory: string
let data: string
let serving: Serving
let trainer: Trainer

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await start()
})
afterAll(async () => {
  await serving.stop()
})

async function start(): Promise<void> {
  serving = await serve(data)
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

async function openRun(run: string, more: Json = {}): Promise<Json> {
  const opened = await trainer.ask('POST', '/runs', { run_id: run, tasks, ...more })
  await trainer.attach(run)
  return opened
}
const submit = (run: string, ...groups: readonly Json[]) =>
  trainer.ask('POST', `/runs/${run}/groups`, { groups: groups.map((one) => ({ task: 'log-forensics', n: 1, ...one })) })
const settled = async (run: string, more: Json = {}): Promise<Claim> => {
  for (;;) {
    const [claim] = await trainer.claim(run, { wait_s: 60, ...more })
    if (claim !== undefined) return claim
  }
}
const rolloutsOf = async (group: string) => {
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${serving.ready.control}/groups/${group}`, { headers })
  return (
    (await answer.json()) as { rollouts: readonly { id: string; startedAt: number | null; end: string | null }[] }
  ).rollouts
}
const begun = async (group: string): Promise<string> => {
  for (;;) {
    const found = (await rolloutsOf(group)).find(({ startedAt, end }) => startedAt !== null && end === null)
    if (found !== undefined) return found.id
  }
}

describe('groups that Paddock does', () => {
  it('settle with verdicts of their environment, and are claimed with rows', async () => {
    expect(await openRun('train')).toMatchObject({ harness: 'reference', tasks })
    const taken = { accepted: [{ group_id: 'g', round: 0, state: 'running' }], refused: [] }
    expect(await submit('train', { group_id: 'g', n: 2, labels: { set: 'a' }, priority: 3 })).toMatchObject(taken)
    expect(await submit('train', { group_id: 'g', n: 2, labels: { set: 'a' }, priority: 3 })).toMatchObject(taken)
    const other = { groups: [{ group_id: 'g', task: 'log-forensics', n: 3 }] }
    expect(await trainer.refused('POST', '/runs/train/groups', other)).toEqual([409, 'STORE_CONFLICT'])
    const claim = await settled('train')
    expect(claim).toMatchObject({ group_id: 'g', round: 0, settled: { state: 'settled', usable: 2 } })
    const { rows, members } = await trainer.rows('g', claim.claim_id)
    expect(members).toMatchObject([{ out: null, labels: { set: 'a' } }, { out: null }])
    for (const { reward, usable, trained_tokens_of: trained } of rows) {
      expect([0, 1]).toContain(reward)
      expect(usable).toBe(true)
      expect(trained.row).toBeGreaterThan(0)
    }
    // The weights are those that sampled it: what was recorded is what they say of the same ids again.
    const sequences = rows.map(({ arrays }) => ({ ids: arrays.token_ids, from: 1 }))
    const scored = (await trainer.ask('POST', '/score', { sequences })) as {
      version: { label: string | null }
      sequences: readonly { from: number; logprobs: readonly (number | null)[] }[]
    }
    for (const [at, { arrays }] of rows.entries()) {
      expect(scored.sequences[at]?.logprobs).toHaveLength(arrays.token_ids.length - 1)
      for (const [place, bit] of arrays.loss_mask.entries()) {
        if (bit === 1)
          expect(scored.sequences[at]?.logprobs[place - 1]).toBeCloseTo(arrays.logprobs[place] ?? Number.NaN, 5)
      }
    }
    const others = { sequences, if_version: 'other weights' }
    expect(await trainer.refused('POST', '/score', others)).toEqual([409, 'SCORE_REFUSED'])
  })

  it('are of generated tasks too, which their run names in place of a directory', async () => {
    const generated = { tasks: 'records:0:1..2', environment: 'sql' }
    expect(await openRun('generated', generated)).toMatchObject({ harness: 'reference', tasks: 'records:0:1..2' })
    await submit('generated', { group_id: 'made', task: 'records-0-l2' })
    const claim = await settled('generated')
    expect(claim).toMatchObject({ group_id: 'made', settled: { state: 'settled', usable: 1 } })
    const wrong = { run_id: 'wrong', environment: 'sql', tasks: 'records:5..1:1' }
    expect(await trainer.refused('POST', '/runs', wrong)).toEqual([400, 'TASK_INVALID'])
    expect(await trainer.refused('POST', '/runs', { ...wrong, tasks: 'records' })).toEqual([400, 'BODY_INVALID_SHAPE'])
  })

  it('have further rounds, and are cancelled', async () => {
    const settledBefore = await trainer.ask('GET', '/groups/g')
    expect(settledBefore).toMatchObject({ rounds: [{ round: 0, state: 'settled' }] })
    expect(await trainer.ask('POST', '/groups/g/rounds', { n: 1 })).toMatchObject({ round: 1, state: 'running' })
    expect(await trainer.refused('POST', '/groups/g/rounds', { n: 1 })).toEqual([409, 'ROUND_OPEN'])
    const claim = await settled('train')
    expect(claim).toMatchObject({ group_id: 'g', round: 1, settled: { usable: 1 } })
    await submit('train', { group_id: 'stopped', n: 1 })
    const rollout = await begun('stopped')
    await trainer.ask('POST', '/groups/stopped/cancel', {})
    expect(await trainer.ask('GET', `/rollouts/${rollout}?wait_s=60`)).toMatchObject({ end: 'cancelled' })
    await submit('train', { group_id: 'one', n: 1, min_usable: 0 })
    const one = await begun('one')
    await trainer.ask('POST', `/rollouts/${one}/cancel`, {})
    expect(await trainer.ask('GET', `/rollouts/${one}?wait_s=60`)).toMatchObject({
      end: 'cancelled',
      end_detail: 'cancelled by its trainer',
    })
  })

  it('go on from a rollout of the run, and what was replayed is not trained again', async () => {
    const parent = (await rolloutsOf('g'))[0]?.id ?? ''
    const asked = { group_id: 'fork', call: 3, n: 2 }
    const opened = { group_id: 'fork', round: 0, state: 'running' }
    expect(await trainer.ask('POST', `/rollouts/${parent}/forks`, asked)).toMatchObject(opened)
    expect(await trainer.ask('POST', `/rollouts/${parent}/forks`, asked)).toMatchObject(opened)
    let claim = await settled('train')
    while (claim.group_id !== 'fork') claim = await settled('train')
    expect(claim).toMatchObject({ settled: { usable: 2 } })
    const { rows, members } = await trainer.rows('fork', claim.claim_id)
    const forked = { labels: { 'fork.rollout': parent }, forked_from: { rollout_id: parent } }
    expect(members).toMatchObject([forked, forked])
    const { rollouts, nodes } = (await trainer.ask('GET', `/rollouts/${parent}/tree`)) as {
      rollouts: readonly { rollout_id: string; parent: string | null; reward: number | null }[]
      nodes: readonly { depth: number; rollouts: readonly string[]; value: number | null }[]
    }
    expect(rollouts.map((one) => one.parent)).toEqual([null, parent, parent])
    const rewards = rollouts.map(({ reward }) => reward ?? Number.NaN)
    const shared = nodes.filter((node) => node.rollouts.length === 3)
    expect(shared.map(({ depth }) => depth)).toEqual([0, 1, 2])
    for (const { value } of shared) expect(value).toBeCloseTo(rewards.reduce((sum, one) => sum + one, 0) / 3, 12)
    // The answers to the two calls before are the parent's.
    const whole = (await trainer.rows('g', null)).rows.find((row) => row.rollout_id === parent)
    for (const { trained_tokens_of: trained } of rows)
      expect(trained.row).toBeLessThan(whole?.trained_tokens_of.row ?? 0)
    const wrong = { group_id: 'x', n: 1 }
    expect(await trainer.refused('POST', `/rollouts/${parent}/forks`, { ...wrong, call: 99 })).toEqual([
      409,
      'FORK_REFUSED',
    ])
    expect(await trainer.refused('POST', `/rollouts/${parent}/forks`, { ...wrong, call: 1, way: 'thaw' })).toEqual([
      400,
      'BODY_INVALID_SHAPE',
    ])
  })

  it('have agents that are put aside and go on, or end with a reason', async () => {
    await submit('train', { group_id: 'aside', n: 1, min_usable: 0 })
    const rollout = await begun('aside')
    const shelve = async (): Promise<Json> => {
      for (;;) {
        const answer = await trainer.send('POST', `/rollouts/${rollout}/shelve`, { reason: 'full' })
        const said = (await answer.json()) as Json
        // Its agent may not have begun.
        if (answer.status !== 409) return said
        expect(said).toMatchObject({ error: { code: 'SHELVE_REFUSED' } })
      }
    }
    expect(await shelve()).toEqual({ rollout_id: rollout, state: 'shelved' })
    expect(await trainer.ask('POST', '/runs/train/shelve', {})).toEqual({
      rollouts: [{ rollout_id: rollout, state: 'shelved' }],
      refused: [],
    })
    await trainer.ask('POST', `/rollouts/${rollout}/cancel`, { reason: 'it only repeats itself' })
    expect(await trainer.ask('GET', `/rollouts/${rollout}?wait_s=60`)).toMatchObject({
      end: 'cancelled',
      end_detail: 'it only repeats itself',
    })
    await submit('train', { group_id: 'goes-on', n: 1 })
    const other = await begun('goes-on')
    while ((await trainer.send('POST', `/rollouts/${other}/shelve`, {})).status !== 200);
    expect(await trainer.ask('POST', '/runs/train/resume', {})).toMatchObject({
      rollouts: [{ rollout_id: other, state: 'resuming' }],
    })
    expect(await trainer.ask('GET', `/rollouts/${other}?wait_s=60`)).toMatchObject({ end: 'completed' })
    expect(await trainer.refused('POST', `/rollouts/${other}/resume`, {})).toEqual([409, 'SHELVE_REFUSED'])
    expect(await trainer.refused('POST', '/rollouts/nobody/shelve', {})).toEqual([404, 'NOT_FOUND'])
    expect(await trainer.refused('POST', '/runs/nobody/shelve', {})).toEqual([404, 'NOT_FOUND'])
  })

  it('are shelved when Paddock is killed: that is told, and the slot is tried again', async () => {
    await submit('train', { group_id: 'lost', n: 1 })
    const rollout = await begun('lost')
    while ((await trainer.send('POST', `/rollouts/${rollout}/shelve`, {})).status !== 200);
    serving.kill('SIGKILL')
    await serving.ended
    await start()
    expect(await trainer.ask('GET', `/rollouts/${rollout}`)).toMatchObject({
      end: 'infra',
      end_detail: 'Paddock was stopped while the rollout was shelved',
      reward: null,
    })
    let claim = await settled('train')
    while (claim.group_id !== 'lost') claim = await settled('train')
    expect(claim).toMatchObject({ settled: { state: 'settled', usable: 1 } })
  })

  it('come with the nodes of their families under tree, and each token is owned by one row', async () => {
    await openRun('wood', { row_mode: 'tree' })
    await submit('wood', { group_id: 'roots', n: 2 })
    const first = await settled('wood')
    const roots = await trainer.rows('roots', first.claim_id)
    // Nobody goes on from them: each is a family and a node.
    expect(roots.nodes).toEqual(
      roots.members.map(({ rollout_id: id, reward }) => ({
        parent: null,
        depth: 0,
        rollouts: [id],
        count: 1,
        value: reward,
      })),
    )
    const parent = roots.members[0]?.rollout_id ?? ''
    await trainer.ask('POST', `/rollouts/${parent}/forks`, { group_id: 'twigs', call: 3, n: 2 })
    const second = await settled('wood')
    const twigs = await trainer.rows('twigs', second.claim_id)
    const rewardOf = new Map(
      [...roots.members, ...twigs.members].map((one) => [one.rollout_id, one.reward ?? Number.NaN]),
    )
    const family = [parent, ...twigs.members.map((one) => one.rollout_id)]
    const mean = family.reduce((sum, id) => sum + (rewardOf.get(id) ?? 0), 0) / 3
    expect(twigs.nodes).toHaveLength(4)
    expect(twigs.nodes?.[0]).toMatchObject({ parent: null, depth: 0, rollouts: family, count: 3 })
    expect(twigs.nodes?.[0]?.value).toBeCloseTo(mean, 12)
    for (const id of family) {
      const leaf = { parent: 0, depth: 2, rollouts: [id], count: 1, value: rewardOf.get(id) }
      expect(twigs.nodes).toContainEqual(leaf)
    }
    for (const row of twigs.rows) {
      const leaf = twigs.nodes?.findIndex((node) => node.parent === 0 && node.rollouts[0] === row.rollout_id)
      expect(row.turn_nodes).toEqual(row.turn_spans.map(() => leaf))
    }
    // A later fork, and asking again, change nothing of what a round was handed out with.
    expect(await trainer.rows('roots', first.claim_id)).toEqual(roots)
    await using reader = await openReader(data)
    // What was replayed is in two rows and trains in one.
    const all = [...roots.rows, ...twigs.rows]
    const trained = all.flatMap(({ arrays }) => arrays.loss_mask).filter((bit) => bit === 1).length
    let sampled = 0
    for (const id of new Set(all.map((row) => row.session_id))) {
      for (const { origin, tokens } of (await reader.recorder.session(id)).segments)
        if (origin === 'sampled') sampled += tokens.length
    }
    expect(trained).toBe(sampled)
  })

  it('are of tasks that are there, and not of ones that are held out', async () => {
    const asked = (task: unknown) => ({ groups: [{ group_id: 'x', task, n: 1 }] })
    expect(await trainer.refused('POST', '/runs/train/groups', asked('nothing'))).toEqual([404, 'NOT_FOUND'])
    const bare = { name: 'sum', instruction: 'Add.' }
    expect(await trainer.refused('POST', '/runs/train/groups', asked(bare))).toEqual([501, 'TASK_UNSUPPORTED'])
    expect(await trainer.refused('POST', '/runs', { tasks: '/nowhere' })).toEqual([400, 'TASK_INVALID'])
    expect(await trainer.refused('POST', '/runs', { tasks, harness: 'nobody' })).toEqual([404, 'HARNESS_UNKNOWN'])
    expect(await trainer.refused('POST', '/runs', { tasks: 'relative' })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await trainer.refused('POST', '/runs', { environment: 'terminal' })).toEqual([400, 'BODY_INVALID_SHAPE'])
    const group = { group_id: 'g', idempotency_key: 'k' }
    expect(await trainer.refused('POST', '/rollouts', group)).toEqual([409, 'GROUP_INSIDE'])
  })

  it('go on after a kill of Paddock, closed or not', async () => {
    await openRun('killed')
    await submit('killed', { group_id: 'k', n: 2 })
    await begun('k')
    await trainer.ask('POST', '/runs/killed/close', {})
    serving.kill('SIGKILL')
    await serving.ended
    await start()
    const claim = await settled('killed')
    expect(claim).toMatchObject({ group_id: 'k', settled: { state: 'settled', usable: 2 } })
    expect(await trainer.ask('GET', '/runs/killed')).toMatchObject({ closed: true, counts: { running: 0, claimed: 1 } })
  })
})
