/** Groups of a harness that runs elsewhere, over the control API of a real `paddock serve`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { serve, type Serving } from './here.ts'
import { serve as serveProcess, type Serving as ServingProcess } from './paddock.ts'

let directory: string
let data: string
/** The first: a process of its own, which is killed. */
let killed: ServingProcess
let serving: Serving
let token: string

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  killed = await serveProcess(data)
  serving = killed
  token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
})
afterAll(async () => {
  await serving.stop()
})

interface Member {
  readonly rolloutId: string
  readonly slot: number
  readonly attempt: number
  readonly end: string
  readonly out: string | null
  readonly verdict: { readonly reward: number | null } | null
  readonly cut: string | null
  readonly sampledTokens: number
}

interface Settled {
  readonly state: string
  readonly stoppedBy: string | null
  readonly usable: number
  readonly members: readonly Member[]
  readonly censored: { readonly members: number; readonly sampledTokens: number }
}

interface Opened {
  readonly rollout: {
    readonly id: string
    readonly slot: number
    readonly attempt: number
    readonly labels: Readonly<Record<string, string>>
  }
  readonly session: { readonly id: string }
  readonly key: string
  readonly baseUrl: string
}

interface GroupAnswer {
  readonly group: { readonly id: string; readonly runId: string }
  readonly rounds: readonly { readonly round: number; readonly settled: Settled | null }[]
}

async function ask<T>(method: string, path: string, body?: object, status = method === 'POST' ? 201 : 200): Promise<T> {
  const answer = await fetch(`${serving.ready.control}${path}`, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  expect(answer.status, text).toBe(status)
  return JSON.parse(text) as T
}

const task = { name: 'sum', instruction: 'Add 2 and 2.' }
const openGroup = async (asked: object) => (await ask<GroupAnswer>('POST', '/groups', { task, ...asked })).group
const open = (group: string, more: object = {}) => ask<Opened>('POST', '/rollouts', { group, ...more })
const end = (id: string, reward: number | null, how = 'completed') => {
  const verdict = reward === null ? null : { source: 'test', reward }
  const path = `/rollouts/${id}/end`
  return ask<{ settled: Settled | null }>('POST', path, { end: how, verdict }, 200)
}
const settledOf = async (id: string, round = 0) =>
  (await ask<GroupAnswer>('GET', `/groups/${id}`)).rounds[round]?.settled ?? null
const say = ({ baseUrl, key }: Pick<Opened, 'baseUrl' | 'key'>, content = 'hello') =>
  fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'x', messages: [{ role: 'user', content }] }),
  })

describe('a group of a harness elsewhere', () => {
  it('settles once its members have ended with verdicts, with their labels and tokens', async () => {
    const group = await openGroup({ n: 2, labels: { set: 'a' } })
    const first = await open(group.id, { labels: { who: 'me' } })
    const second = await open(group.id)
    expect(first.rollout).toMatchObject({ slot: 0, attempt: 0, labels: { set: 'a', who: 'me' } })
    expect(second.rollout).toMatchObject({ slot: 1, labels: { set: 'a' } })
    expect((await say(first)).status).toBe(200)
    expect((await end(first.rollout.id, 1)).settled).toBeNull()
    expect((await say(first)).status).toBe(409)
    const { settled } = await end(second.rollout.id, 0)
    expect(settled).toMatchObject({ state: 'settled', stoppedBy: null, usable: 2, censored: { members: 0 } })
    expect(settled?.members.map(({ verdict, out }) => [verdict?.reward, out])).toEqual([
      [1, null],
      [0, null],
    ])
    expect(settled?.members[0]?.sampledTokens).toBeGreaterThan(0)
    expect(await settledOf(group.id)).toEqual(settled)
    expect((await end(second.rollout.id, 0)).settled).toEqual(settled)
    const { error } = await ask<{ error: { code: string } }>('POST', '/rollouts', { group: group.id }, 409)
    expect(error.code).toBe('ROUND_SETTLED')
  })

  it('tells which share of its members has no number, and why', async () => {
    const group = await openGroup({ n: 3 })
    const members = [await open(group.id), await open(group.id), await open(group.id)] as const
    const [sound, faulted, unscored] = members
    expect((await say(sound)).status).toBe(200)
    const order = { kind: 'http_error', status: 429, match: { session: faulted.session.id } }
    await fetch(`${serving.ready.engineControl}/faults`, { method: 'POST', body: JSON.stringify(order) })
    expect((await say(faulted)).status).toBe(429)
    expect((await say(unscored)).status).toBe(200)
    await end(sound.rollout.id, 0)
    await end(faulted.rollout.id, 0)
    const path = `/rollouts/${unscored.rollout.id}/end`
    const verdict = { source: 'test', reward: null, reason: 'unclear' }
    const { settled } = await ask<{ settled: Settled | null }>('POST', path, { end: 'completed', verdict }, 200)
    expect(settled?.members.map(({ out }) => out)).toEqual([null, 'tainted', 'no_number'])
    const { nulls } = await ask<{ nulls: object }>('GET', `/runs/${group.runId}`)
    const count = { ended: 3, nulls: 2, share: 2 / 3, causes: { ENGINE_ERROR: 1, unscorable: 1 } }
    expect(nulls).toMatchObject({ ...count, tasks: { sum: count } })
    const [counted] = Object.values((nulls as { versions: Record<string, object> }).versions)
    expect(counted).toEqual({ ended: 2, nulls: 1, share: 1 / 2, causes: { unscorable: 1 } })
  })

  it('gets no session in a rollout that has ended, whose tokens nobody would count', async () => {
    const group = await openGroup({ n: 2 })
    const { rollout } = await open(group.id)
    const more = await ask<Opened>('POST', '/sessions', { rolloutId: rollout.id })
    expect((await say(more)).status).toBe(200)
    await end(rollout.id, 1)
    expect((await say(more)).status).toBe(409)
    const { error } = await ask<{ error: { code: string; message: string } }>(
      'POST',
      '/sessions',
      { rolloutId: rollout.id },
      409,
    )
    expect(error).toMatchObject({ code: 'STORE_CONFLICT', message: expect.stringContaining('has ended as completed') })
  })

  it('waits for a verdict that comes later', async () => {
    const group = await openGroup({ n: 1 })
    const { rollout } = await open(group.id)
    expect((await end(rollout.id, null)).settled).toBeNull()
    await ask('POST', `/rollouts/${rollout.id}/verdicts`, { source: 'slow', reward: 0.25 })
    expect(await settledOf(group.id)).toMatchObject({ usable: 1, members: [{ verdict: { reward: 0.25 }, out: null }] })
  })

  it('stops its stragglers once enough members are usable, and keeps what they had', async () => {
    const group = await openGroup({ n: 2, stopWhen: { kind: 'usable', count: 1 } })
    const straggler = await open(group.id)
    const winner = await open(group.id)
    expect((await say(straggler)).status).toBe(200)
    const { settled } = await end(winner.rollout.id, 1)
    expect(settled).toMatchObject({ state: 'settled', stoppedBy: 'usable', usable: 1, censored: { members: 1 } })
    expect(settled?.members[0]).toMatchObject({ end: 'cancelled', out: 'censored' })
    expect(settled?.censored.sampledTokens).toBe(settled?.members[0]?.sampledTokens)
    expect(settled?.censored.sampledTokens).toBeGreaterThan(0)
    expect((await say(straggler)).status).toBe(409)
    const { calls } = await ask<{ calls: readonly object[] }>('GET', `/sessions/${straggler.session.id}`)
    expect(calls).toHaveLength(1)
    await ask('POST', `/rollouts/${straggler.rollout.id}/end`, { end: 'completed' }, 409)
  })

  it('settles at its deadline although nobody says anything', async () => {
    const group = await openGroup({ n: 3, deadlineMs: 1 })
    let settled: Settled | null = null
    while (settled === null) settled = await settledOf(group.id)
    expect(settled).toMatchObject({ state: 'failed', stoppedBy: 'deadline', members: [] })
  })

  it('leaves a member out whose verdict comes too late, tells it, and counts it in the next round', async () => {
    const group = await openGroup({ n: 2 })
    const late = await open(group.id)
    const other = await open(group.id)
    await end(late.rollout.id, null)
    await end(other.rollout.id, 0)
    const { settled } = await ask<{ settled: Settled }>('DELETE', `/groups/${group.id}`)
    expect(settled.members.map(({ out }) => out)).toEqual(['late', null])
    await ask('POST', `/rollouts/${late.rollout.id}/verdicts`, { source: 'slow', reward: 1 })
    expect(await settledOf(group.id)).toEqual(settled)
    const { events } = await ask<{ events: readonly { kind: string; seq: number; data: object }[] }>(
      'GET',
      `/runs/${group.runId}/events?after=0`,
    )
    expect(events.map(({ kind }) => kind)).toEqual(['group_opened', 'group_settled', 'verdict_late'])
    expect(events[2]?.data).toMatchObject({ rolloutId: late.rollout.id, reward: 1, round: 0 })
    await ask('POST', `/groups/${group.id}/rounds`, { n: 1 })
    const more = await open(group.id)
    expect(more.rollout.slot).toBe(2)
    const next = (await end(more.rollout.id, 0.5)).settled
    expect(next?.members.map(({ rolloutId, verdict }) => [rolloutId, verdict?.reward])).toEqual([
      [late.rollout.id, 1],
      [more.rollout.id, 0.5],
    ])
  })

  it('gives the same group and rollout for the same id and key', async () => {
    const id = newId()
    const group = await openGroup({ id, n: 2 })
    expect(await openGroup({ id, n: 2 })).toEqual(group)
    await ask('POST', '/groups', { task, id, n: 3 }, 409)
    const [first, again] = await Promise.all([open(id, { key: 'a' }), open(id, { key: 'a' })])
    expect(again.rollout.id).toBe(first.rollout.id)
    expect(again.session.id).not.toBe(first.session.id)
    expect((await say(again)).status).toBe(200)
    expect((await open(id, { key: 'b' })).rollout.slot).toBe(1)
  })

  it('tries a slot again whose attempt failed, and no other', async () => {
    const group = await openGroup({ n: 2 })
    const first = await open(group.id)
    await ask('POST', '/rollouts', { group: group.id, slot: 0 }, 409)
    await end(first.rollout.id, null, 'infra')
    const again = await open(group.id, { slot: 0 })
    expect(again.rollout).toMatchObject({ slot: 0, attempt: 1 })
    const other = await open(group.id)
    await end(again.rollout.id, 1)
    const { settled } = await end(other.rollout.id, null, 'infra')
    expect(settled?.members.map(({ slot, attempt, out }) => [slot, attempt, out])).toEqual([
      [0, 1, null],
      [1, 0, 'infra'],
    ])
  })

  it('cuts agents at its horizon, and says what that is worth', async () => {
    const group = await openGroup({ n: 1, horizon: 1, onCut: { horizon: 'zero' } })
    const cut = await open(group.id)
    expect((await say(cut)).status).toBe(200)
    expect((await say(cut, 'more')).status).toBe(429)
    const { settled } = await end(cut.rollout.id, 1, 'horizon')
    expect(settled?.members).toMatchObject([{ end: 'horizon', cut: 'zero', verdict: { reward: 0 }, out: null }])
  })

  it.each([
    ['a deadline of more than a year', { n: 1, deadlineMs: 1e12 }, 'GROUP_INVALID'],
    ['more usable members than there can be', { n: 1, stopWhen: { kind: 'usable', count: 2 } }, 'GROUP_INVALID'],
    ['an unknown key', { n: 1, borrow: true }, 'BODY_INVALID_SHAPE'],
  ])('is refused where it asks for %s', async (_what, asked, code) => {
    const { error } = await ask<{ error: { code: string } }>('POST', '/groups', { task, ...asked }, 400)
    expect(error.code).toBe(code)
  })

  it('is not one that Paddock itself fills', async () => {
    const { rollouts } = await ask<{ rollouts: readonly { groupId: string; harness: string }[] }>('GET', '/rollouts')
    const own = rollouts.find(({ groupId }) => groupId !== undefined)
    const { error } = await ask<{ error: { code: string } }>('POST', '/rollouts', { group: own?.groupId }, 409)
    expect(error.code).toBe('GROUP_INSIDE')
  })

  it('outlives Paddock: sessions go on, nothing ends by itself, it settles once', async () => {
    const group = await openGroup({ n: 2 })
    const done = await open(group.id, { key: 'done' })
    const going = await open(group.id, { key: 'going' })
    expect((await say(going)).status).toBe(200)
    await end(done.rollout.id, 1)
    const { port } = new URL(serving.ready.inference)
    for (const stop of ['kill', 'stop'] as const) {
      if (stop === 'kill') killed.kill('SIGKILL')
      else await serving.stop()
      await serving.ended
      serving = await serve(data, ['--port', port])
      expect(await settledOf(group.id)).toBeNull()
      expect((await say(going, `still here after ${stop}`)).status).toBe(200)
    }
    expect((await open(group.id, { key: 'done' })).rollout.id).toBe(done.rollout.id)
    const { settled } = await end(going.rollout.id, 0)
    expect(settled).toMatchObject({ state: 'settled', usable: 2 })
    const { events } = await ask<{ events: readonly { kind: string }[] }>('GET', `/runs/${group.runId}/events`)
    expect(events.filter(({ kind }) => kind === 'group_settled')).toHaveLength(1)
  })
})
