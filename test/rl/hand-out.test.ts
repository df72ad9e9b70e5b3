/** A trainer's claims, rows and dispositions over `/rl/v1` of a real `paddock serve`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildRows, openReader, selectForExport } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/here.ts'
import { serve as serveProcess, type Serving as ServingProcess } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { say, talk, task, Trainer } from './trainer.ts'

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
  serving = killed
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
})
afterAll(async () => {
  await serving.stop()
})

/** A run to which a trainer has attached. */
async function openRun(more: Record<string, unknown> = {}): Promise<string> {
  runs += 1
  const { run_id: run } = await trainer.ask<{ run_id: string }>('POST', '/runs', { run_id: `run-${runs}`, ...more })
  await trainer.attach(run)
  return run
}
const counts = async (run: string) => (await trainer.ask<{ counts: unknown }>('GET', `/runs/${run}`)).counts
const used = (row: string, step = 1) => ({ row, step, outcome: 'used', advantage: 1, reward_used: 1 })

describe('a rollout that was cut', () => {
  it.each([
    ['verify', 0.5, null, true],
    ['mask', 0.5, null, false],
    ['zero', 0, null, true],
    ['null', null, 'no_number', false],
  ] as const)('counts and trains as on_cut %s says', async (how, reward, out, trains) => {
    const run = await openRun()
    const group = { group_id: `${run}-g`, task, n: 2, horizon: 1, on_cut: { horizon: how } }
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [group] })
    const [cut, whole] = [await trainer.open(`${run}-g`), await trainer.open(`${run}-g`)]
    for (const one of [cut, whole]) await talk(one, 1)
    await trainer.end(cut.rollout_id, 0.5, 'horizon')
    await trainer.end(whole.rollout_id, 1)
    const [claim] = await trainer.claim(run)
    const { members, rows } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    expect(members).toMatchObject([
      { rollout_id: cut.rollout_id, end: 'horizon', cut: how, reward, out },
      { end: 'completed', cut: null, reward: 1, out: null },
    ])
    const row = rows.find((one) => one.rollout_id === cut.rollout_id)
    expect(row).toMatchObject({ end: 'horizon', cut: how, usable: trains })
    expect(row?.arrays.loss_mask.includes(1)).toBe(trains)
    if (how !== 'mask') return
    expect(row).toMatchObject({ unusable_reason: 'cut', reward: 0.5, rows_of_rollout: 0 })
    expect(new Set(row?.mask_reasons.map(([, , reason]) => reason))).toEqual(new Set(['cut']))
    // The same of exports: in the mean, and not in the loss.
    await using reader = await openReader(data)
    for (const trainedRowsOnly of [false, true]) {
      const selection = selectForExport(reader, { runIds: [run], trainedRowsOnly })
      const advantages: (number | null)[] = []
      for await (const { rollout, advantage } of selection)
        if (rollout.id === whole.rollout_id) advantages.push(advantage)
      expect(advantages).toEqual([expect.closeTo(Math.SQRT1_2, 5)])
      const { accounting, rollouts } = selection.summary()
      if (trainedRowsOnly)
        expect(rollouts.dropped).toMatchObject([{ rolloutId: cut.rollout_id, reason: 'nothing_to_train' }])
      else expect(accounting.masked.cut).toBe(accounting.sampled - accounting.trainable)
    }
  })

  it('has no number where no call was answered, whatever its harness says', async () => {
    const run = await openRun()
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
    const { rollout_id: rollout } = await trainer.open(`${run}-g`)
    expect(await trainer.end(rollout, 1, 'agent_timeout')).toMatchObject({ reward: null, status: 'unscorable' })
  })
})

describe('a run', () => {
  it('is opened once: asked for alike it is the same, otherwise a conflict', async () => {
    const asked = { run_id: 'once', row_mode: 'turns', staleness: { max: 2 }, capacity: { groups: 3 } }
    const first = await trainer.ask('POST', '/runs', asked)
    expect(first).toMatchObject({
      capture: 'tokens',
      incarnation: null,
      row_mode: 'turns',
      capacity: { groups: 3, taken: 0 },
    })
    expect(await trainer.ask('POST', '/runs', asked)).toEqual(first)
    expect(await trainer.refused('POST', '/runs', { ...asked, row_mode: 'chains' })).toEqual([409, 'STORE_CONFLICT'])
    expect(await trainer.refused('POST', '/runs', { ...asked, row_mode: 'forest' })).toEqual([
      400,
      'BODY_INVALID_SHAPE',
    ])
    expect(await trainer.refused('GET', '/runs/nobody')).toEqual([404, 'NOT_FOUND'])
    expect(await trainer.refused('POST', '/runs/nobody/attach', { resume_step: null })).toEqual([404, 'NOT_FOUND'])
  })

  it('is refused what could not be told apart, lost, or done', async () => {
    const run = await openRun()
    const group = (id: string, more: object) => ({ groups: [{ group_id: `${run}-${id}`, task, n: 2, ...more }] })
    for (const more of [{ n: 100_001 }, { over: 1e9 }, { top_up: 1e9 }]) {
      const asked = trainer.refused('POST', `/runs/${run}/groups`, group('many', more))
      expect(await asked).toEqual([400, 'BODY_INVALID_SHAPE'])
    }
    await trainer.ask('POST', `/runs/${run}/groups`, group('g', {}))
    const [first, other] = [await trainer.open(`${run}-g`, { idempotency_key: 'a' }), await trainer.open(`${run}-g`)]
    const [named, conflict] = [{ group_id: `${run}-g`, idempotency_key: 'a' }, [409, 'STORE_CONFLICT']]
    expect(await trainer.refused('POST', '/rollouts', { ...named, harness: 'another' })).toEqual(conflict)
    // Another attempt of a slot has a key too: its answer may be lost as well.
    await trainer.end(first.rollout_id, null, 'infra')
    const again = await trainer.open(`${run}-g`, { slot: 0, idempotency_key: 'b' })
    const repeated = await trainer.open(`${run}-g`, { slot: 0, idempotency_key: 'b' })
    expect(repeated.rollout_id).toBe(again.rollout_id)
    expect(again.rollout_id).not.toBe(first.rollout_id)
    expect(await trainer.refused('POST', '/rollouts', { ...named, slot: 0, idempotency_key: 'c' })).toEqual(conflict)
    // A number that comes with a second end would be lost.
    await talk(again, 1)
    await trainer.end(again.rollout_id, 0.5)
    await trainer.end(again.rollout_id, 0.5)
    await trainer.ask('POST', `/rollouts/${other.rollout_id}/end`, { end: 'completed' })
    // Nothing is sampled behind an end: opening it again says how it ended, and gives no key.
    expect(await trainer.open(`${run}-g`, { idempotency_key: 'a' })).toMatchObject({
      rollout_id: again.rollout_id,
      end: 'completed',
      session_id: null,
      key: null,
      base_url: null,
    })
    for (const id of [again.rollout_id, other.rollout_id]) {
      const end = { end: 'completed', verdict: { source: 'test', reward: 1 } }
      expect(await trainer.refused('POST', `/rollouts/${id}/end`, end)).toEqual(conflict)
    }
    await trainer.ask('POST', `/rollouts/${other.rollout_id}/verdict`, { source: 'test', reward: 1 })
    const [claim] = await trainer.claim(run)
    const { rows } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    for (const tokens of [
      [5, 2],
      [2, 2],
    ]) {
      const body = { incarnation: 1, dispositions: trainer.said([{ ...used(rows[0]?.row_id ?? ''), tokens }]) }
      const asked = trainer.refused('POST', `/runs/${run}/dispositions`, body)
      expect(await asked).toEqual([400, 'BODY_INVALID_SHAPE'])
    }
  })

  it('samples as its trainer can recompute, whatever the harness asks', async () => {
    const run = await openRun()
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
    const opened = await trainer.open(`${run}-g`)
    await talk(opened, 1, { temperature: 0.2, top_p: 0.5, top_k: 7, presence_penalty: 1 })
    await using reader = await openReader(data)
    const { calls } = await reader.recorder.session(opened.session_id)
    expect(calls[0]?.intent.asked).toMatchObject({ temperature: 0.2, topP: 0.5, topK: 7, presencePenalty: 1 })
    expect(calls[0]?.intent.used).toMatchObject({ temperature: 1, topP: 1, topK: -1, presencePenalty: 0 })
  })

  it('takes groups while there is room, once each, and none when it is closed', async () => {
    const run = await openRun({ capacity: { groups: 2 } })
    const group = (id: string) => ({ group_id: `${run}-${id}`, task, n: 1 })
    const groups = ['a', 'b', 'c'].map(group)
    const answer = await trainer.send('POST', `/runs/${run}/groups`, { groups })
    expect(answer.status).toBe(429)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await answer.json()).toMatchObject({
      error: { code: 'RUN_FULL' },
      accepted: [{ group_id: `${run}-a`, round: 0, state: 'running' }, { group_id: `${run}-b` }],
      refused: [`${run}-c`],
      capacity: { groups: 2, taken: 2 },
    })
    const lines = [group('a'), group('b')].map((one) => JSON.stringify(one)).join('\n')
    const again = await trainer.send('POST', `/runs/${run}/groups`, lines, { 'content-type': 'application/x-ndjson' })
    expect([again.status, await again.json()]).toMatchObject([202, { refused: [], capacity: { taken: 2 } }])
    expect(await trainer.refused('POST', `/runs/${run}/groups`, { groups: [{ ...group('a'), n: 5 }] })).toEqual([
      409,
      'STORE_CONFLICT',
    ])
    await trainer.ask('POST', `/runs/${run}/close`, {})
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ closed: true, counts: { running: 2 } })
    expect(await trainer.refused('POST', `/runs/${run}/groups`, { groups: [group('d')] })).toEqual([409, 'RUN_CLOSED'])
    expect(await trainer.ask('POST', `/runs/${run}/groups`, { groups: [group('a')] })).toMatchObject({ refused: [] })
  })
})

describe('rows', () => {
  it('are what was sampled, to the token, in both encodings', async () => {
    const run = await openRun()
    const group = `${run}-g`
    const [first = '', second = ''] = await trainer.settle(run, group, [1, 0])
    const [claim] = await trainer.claim(run)
    const round = await trainer.rows(group, claim?.claim_id ?? '')
    expect(round.members.map(({ rollout_id: id, out, reward }) => [id, out, reward])).toEqual([
      [first, null, 1],
      [second, null, 0],
    ])
    expect(round.rows.map((row) => row.rollout_id)).toEqual([first, second])
    await using reader = await openReader(data)
    for (const row of round.rows) {
      const [session] = await reader.recorder.sessions({ rolloutId: row.rollout_id })
      const log = await reader.recorder.session(session?.id ?? '')
      const [stored] = buildRows(log, { rolloutId: row.rollout_id, groupId: group, taskDigest: '' }).rows
      expect(row.arrays.token_ids).toEqual([...(stored?.tokens ?? [])])
      expect(row.arrays.loss_mask).toEqual([...(stored?.mask ?? [])])
      row.arrays.loss_mask.forEach((bit, at) => {
        expect(row.arrays.logprobs[at]).toBeCloseTo(bit === 1 ? (stored?.logprobs[at] ?? 9) : 0, 6)
      })
      const trained = row.arrays.loss_mask.filter((bit) => bit === 1).length
      expect(row).toMatchObject({ usable: true, weight: 1, rows_of_rollout: 1, mask_reasons: [], fork_reason: null })
      expect(row.trained_tokens_of.row).toBe(trained)
      expect(row.node_ids).toHaveLength(2)
      const spans = row.versions.map(([start, end, low, high]) => [start, end, low, high])
      const [[a = 0, b = 0] = [], [c = 0, d = 0] = []] = row.turn_spans
      expect(row.prompt_len).toBe(a)
      expect(row.observation_spans).toEqual([[b, c]])
      expect(spans).toEqual([
        [0, a, -1, -1],
        [a, b, 0, 0],
        [b, c, -1, -1],
        [c, d, 0, 0],
      ])
      expect(d).toBe(row.n_tokens)
    }
    const binary = await binaryRows(group, claim?.claim_id ?? '')
    expect(binary).toEqual(round)
  })

  it('of one call each, under turns, train each answer once', async () => {
    const run = await openRun({ row_mode: 'turns' })
    await trainer.settle(run, `${run}-g`, [1], 3)
    const [claim] = await trainer.claim(run)
    const { rows } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    expect(rows.map(({ node_ids: nodes }) => nodes.length)).toEqual([1, 2, 3])
    expect(rows.map(({ weight, rows_of_rollout: k }) => [weight, k])).toEqual(Array(3).fill([1 / 3, 3]))
    const sampled = rows.at(-1)?.turn_spans.map(([start = 0, end = 0]) => end - start)
    expect(rows.map((row) => row.trained_tokens_of.row)).toEqual(sampled)
    expect(rows[2]?.mask_reasons.map(([, , why]) => why)).toEqual(['owned_elsewhere', 'owned_elsewhere'])
  })

  it('of a rollout that forked name why, and train what they share once', async () => {
    const run = await openRun()
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
    const opened = await trainer.open(`${run}-g`)
    const said = await talk(opened, 2)
    const otherwise = { role: 'user', content: 'something else' }
    await say(opened, [...said.slice(0, 2), otherwise])
    await say(opened, [...said.slice(0, 1), { role: 'assistant', content: 'never said' }, otherwise])
    await trainer.end(opened.rollout_id, 1)
    const [claim] = await trainer.claim(run)
    const { rows } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    expect(rows.map(({ fork_reason: why }) => why)).toEqual([null, null, 'harness_rewrite'])
    expect(rows.map((row) => row.mask_reasons.map(([, , why]) => why))).toEqual([[], ['owned_elsewhere'], []])
    const trained = rows.map((row) => row.trained_tokens_of.row)
    expect(rows[0]?.trained_tokens_of.rollout).toBe(trained.reduce((sum, count) => sum + count, 0))
    expect(rows.map(({ weight }) => weight)).toEqual([1 / 3, 1 / 3, 1 / 3])
  })

  it('train nothing where a member has no part, and are never left out', async () => {
    const run = await openRun()
    const [known = '', unknown = ''] = await trainer.settle(run, `${run}-g`, [1, null])
    const [claim] = await trainer.claim(run)
    const { rows, members } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    expect(members.map(({ out }) => out)).toEqual([null, 'no_number'])
    const of = (id: string) => rows.find((row) => row.rollout_id === id)
    expect(of(known)).toMatchObject({ usable: true, reward: 1 })
    expect(of(unknown)).toMatchObject({ usable: false, unusable_reason: 'no_number', reward: null, weight: 0 })
    expect(of(unknown)?.trained_tokens_of).toMatchObject({ row: 0, rollout: 0 })
    expect(of(unknown)?.mask_reasons.map(([, , why]) => why)).toEqual(['no_number', 'no_number'])
  })

  it('do not train what a grammar or a forced tool shaped, unless the run says so', async () => {
    const shaped = { response_format: { type: 'json_object' } }
    for (const [constrained, why] of [
      ['mask', ['constrained']],
      ['train', []],
    ] as const) {
      const run = await openRun({ constrained })
      await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
      const opened = await trainer.open(`${run}-g`)
      await talk(opened, 1, shaped)
      await trainer.end(opened.rollout_id, 1)
      const [claim] = await trainer.claim(run)
      const { rows } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
      expect(rows[0]?.mask_reasons.map(([, , reason]) => reason)).toEqual(why)
    }
  })

  it('may be read without a claim, which owns nothing; not before the round has settled', async () => {
    const run = await openRun()
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
    expect(await trainer.refused('GET', `/groups/${run}-g/rounds/0/rows`)).toEqual([409, 'ROUND_OPEN'])
    expect(await trainer.refused('GET', `/groups/${run}-g/rounds/1/rows`)).toEqual([404, 'NOT_FOUND'])
    const opened = await trainer.open(`${run}-g`)
    await talk(opened, 1)
    await trainer.end(opened.rollout_id, 1)
    const read = await trainer.rows(`${run}-g`, null)
    expect(read.claim_id).toBeNull()
    const [row] = read.rows
    expect(await trainer.refused('POST', `/runs/${run}/dispositions`, said(used(row?.row_id ?? '')))).toEqual([
      404,
      'NOT_FOUND',
    ])
    expect(await counts(run)).toMatchObject({ settled_unclaimed: 1 })
  })
})

describe('a claim', () => {
  it('is of settled groups, oldest first, and waits for the next one', async () => {
    const run = await openRun()
    await trainer.settle(run, `${run}-a`, [1], 1)
    await trainer.settle(run, `${run}-b`, [1], 1)
    expect((await trainer.claim(run, { max_groups: 5 })).map((claim) => claim.group_id)).toEqual([
      `${run}-a`,
      `${run}-b`,
    ])
    expect(await trainer.claim(run)).toEqual([])
    const waiting = trainer.claim(run, { wait_s: 60 })
    await trainer.settle(run, `${run}-c`, [1], 1)
    expect((await waiting).map((claim) => claim.group_id)).toEqual([`${run}-c`])
    expect(await counts(run)).toMatchObject({ claimed: 3, settled_unclaimed: 0 })
  })

  it('goes to the next who waits when its lease is over, with the same bytes', async () => {
    const run = await openRun()
    await trainer.settle(run, `${run}-g`, [1, 0], 1)
    const [lost] = await trainer.claim(run, { lease_s: 1 })
    const before = await trainer.rows(`${run}-g`, lost?.claim_id ?? '')
    const [claim] = await trainer.claim(run, { wait_s: 60, consumer: 'other' })
    expect(claim).toMatchObject({ group_id: `${run}-g`, again: true })
    const after = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    expect({ ...after, claim_id: null }).toEqual({ ...before, claim_id: null })
    const late = { incarnation: 1, lease_s: 5 }
    expect(await trainer.refused('POST', `/claims/${lost?.claim_id}/renew`, late)).toEqual([409, 'CLAIM_OVER'])
    expect(await trainer.refused('GET', `/groups/${run}-g/rounds/0/rows?claim_id=${lost?.claim_id}`)).toEqual([
      409,
      'CLAIM_OVER',
    ])
    // Two who both trained it: the second one is refused whole, with what else it says.
    const [one, two] = after.rows.map((row) => row.row_id)
    const said = [used(two ?? ''), { ...used(one ?? ''), claim_id: lost?.claim_id }]
    const body = { incarnation: 1, dispositions: trainer.said(said) }
    expect(await trainer.refused('POST', `/runs/${run}/dispositions`, body)).toEqual([409, 'CLAIM_OVER'])
    await trainer.ask('POST', `/claims/${claim?.claim_id}/renew`, late)
    await trainer.ask('DELETE', `/claims/${claim?.claim_id}?incarnation=1`)
    expect(await counts(run)).toMatchObject({ claimed: 0, settled_unclaimed: 1 })
  })

  it('is done when each of its rows has a disposition; a half of it comes back without what was used', async () => {
    const run = await openRun()
    await trainer.settle(run, `${run}-g`, [1, 0], 1)
    const [claim] = await trainer.claim(run, { lease_s: 1 })
    const { rows } = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    const [one = '', two = ''] = rows.map((row) => row.row_id)
    expect(await trainer.dispose(run, [used(one)])).toEqual({ accepted: 1, repeated: 0, claims_done: [] })
    const [again] = await trainer.claim(run, { wait_s: 60 })
    const rest = await trainer.rows(`${run}-g`, again?.claim_id ?? '')
    expect(rest.rows.map((row) => [row.trained_tokens_of.row > 0, row.mask_reasons.map(([, , why]) => why)])).toEqual([
      [false, ['used']],
      [true, []],
    ])
    const both = [used(one), { ...used(two), outcome: 'no_signal', advantage: 0 }]
    expect(await trainer.dispose(run, both)).toEqual({ accepted: 1, repeated: 1, claims_done: [again?.claim_id] })
    expect(await trainer.dispose(run, both)).toEqual({ accepted: 0, repeated: 2, claims_done: [again?.claim_id] })
    expect(await counts(run)).toMatchObject({ done: 1, claimed: 0 })
  })
})

describe('a trainer that comes back', () => {
  it('fences the one before, undoes what its checkpoint has not, and gets it again', async () => {
    const run = await openRun()
    for (const [step, name] of [
      [1, 'a'],
      [2, 'b'],
    ] as const) {
      await trainer.settle(run, `${run}-${name}`, [1], 1)
      const [claim] = await trainer.claim(run)
      const { rows } = await trainer.rows(`${run}-${name}`, claim?.claim_id ?? '')
      await trainer.dispose(run, [used(rows[0]?.row_id ?? '', step)])
    }
    await trainer.settle(run, `${run}-c`, [1], 1)
    const [held] = await trainer.claim(run)
    await trainer.ask('POST', `/runs/${run}/checkpoint`, { incarnation: 1, step: 1 })
    expect(await trainer.ask('POST', `/runs/${run}/attach`, { resume_step: 1 })).toMatchObject({
      incarnation: 2,
      undone: { dispositions: 1, rows: 1 },
      again: [`${run}-b`, `${run}-c`],
      stale: [],
    })
    expect(await trainer.refused('POST', `/runs/${run}/claims`, { incarnation: 1 })).toEqual([409, 'FENCED'])
    expect(await trainer.refused('DELETE', `/claims/${held?.claim_id}?incarnation=1`)).toEqual([409, 'FENCED'])
    const claims = await trainer.claim(run, { incarnation: 2, max_groups: 5 })
    expect(claims.map(({ group_id: group, again }) => [group, again])).toEqual([
      [`${run}-b`, true],
      [`${run}-c`, true],
    ])
  })

  it('finds everything as it was after a kill -9 of Paddock', async () => {
    const run = await openRun()
    await trainer.settle(run, `${run}-g`, [1, 0], 1)
    const [claim] = await trainer.claim(run)
    const before = await trainer.rows(`${run}-g`, claim?.claim_id ?? '')
    killed.kill('SIGKILL')
    await serving.ended
    serving = await serve(data)
    trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
    expect(await trainer.rows(`${run}-g`, claim?.claim_id ?? '')).toEqual(before)
    expect(
      await trainer.dispose(
        run,
        before.rows.map((row) => used(row.row_id)),
      ),
    ).toMatchObject({
      claims_done: [claim?.claim_id],
    })
  })
})

describe('events', () => {
  it('are told behind cursors of their own run alone, and none that is to come', async () => {
    const run = await openRun()
    const asked = (after: string) => trainer.refused('GET', `/runs/${run}/events?after=${after}`)
    for (const after of [
      '',
      'x',
      '1',
      `${run}:1:`,
      `${run}:1:-1`,
      `${run}:1:0x1`,
      `${run}:a:1`,
      `${run}:1:1:1`,
      'run-1:1:1',
    ]) {
      expect([after, await asked(after)]).toEqual([after, [400, 'BODY_INVALID_SHAPE']])
    }
    for (const after of [`${run}:1:999999`, `${run}:2:0`]) expect(await asked(after)).toEqual([409, 'CURSOR_AHEAD'])
    expect((await trainer.send('GET', `/runs/${run}/events?after=${run}:1:0`)).status).toBe(200)
  })

  it('go on behind a cursor, and wait for what happens next', async () => {
    const run = await openRun()
    const look = async (query: string) => {
      const answer = await trainer.send('GET', `/runs/${run}/events?${query}`)
      const lines = (await answer.text()).trim().split('\n')
      return lines.map((line) => JSON.parse(line) as { cursor: string; type: string; group_id?: string })
    }
    const [attached] = await look('')
    expect(attached?.type).toBe('attached')
    const [quiet] = await look(`after=${attached?.cursor}`)
    expect(quiet?.type).toBe('heartbeat')
    const waiting = look(`after=${quiet?.cursor}&wait_s=60`)
    await trainer.settle(run, `${run}-g`, [1], 1)
    expect((await waiting)[0]).toMatchObject({ type: 'group_opened', group_id: `${run}-g` })
    const all = await look('')
    expect(all.map(({ type }) => type)).toEqual(['attached', 'group_opened', 'group_settled'])
    expect(await look(`after=${all[0]?.cursor}`)).toEqual(all.slice(1))
    expect(await trainer.refused('GET', `/runs/${run}/events?after=other:1:1`)).toEqual([400, 'BODY_INVALID_SHAPE'])
  })

  it('a rollout is waited for', async () => {
    const run = await openRun()
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
    const opened = await trainer.open(`${run}-g`, { idempotency_key: 'k' })
    expect((await trainer.open(`${run}-g`, { idempotency_key: 'k' })).rollout_id).toBe(opened.rollout_id)
    expect(await trainer.ask('GET', `/rollouts/${opened.rollout_id}`)).toMatchObject({ end: null, reward: null })
    const waiting = trainer.ask('GET', `/rollouts/${opened.rollout_id}?wait_s=60`)
    await trainer.ask('POST', `/rollouts/${opened.rollout_id}/cancel`, {})
    expect(await waiting).toMatchObject({ end: 'cancelled', group_id: `${run}-g` })
  })
})

function said(...dispositions: readonly object[]): object {
  return { incarnation: 1, dispositions: trainer.said(dispositions as readonly Record<string, unknown>[]) }
}

/** Reads the binary body as its format is told, sharing nothing with the writer. */
async function binaryRows(group: string, claim: string): Promise<unknown> {
  const answer = await trainer.send('GET', `/groups/${group}/rounds/0/rows?claim_id=${claim}`)
  expect(answer.headers.get('content-type')).toBe('application/vnd.paddock.rows')
  const body = Buffer.from(await answer.arrayBuffer())
  expect(body.toString('latin1', 0, 8)).toBe('PDKROWS1')
  const length = body.readUInt32LE(8)
  const start = Math.ceil((12 + length) / 8) * 8
  type Place = { offset: number; length: number; dtype: string }
  const head = JSON.parse(body.toString('utf8', 12, 12 + length)) as {
    rows: { arrays: Record<string, Place> }[]
  }
  const read = ({ offset, length: count, dtype }: Place) =>
    Array.from({ length: count }, (_, at) => {
      if (dtype === 'u1') return body.readUInt8(start + offset + at)
      const place = start + offset + at * 4
      const value = dtype === 'i4' ? body.readInt32LE(place) : body.readFloatLE(place)
      return Number.isNaN(value) ? null : value
    })
  return {
    ...head,
    rows: head.rows.map((row) => ({
      ...row,
      arrays: Object.fromEntries(Object.entries(row.arrays).map(([name, place]) => [name, read(place)])),
    })),
  }
}
