/** A session that goes on from another one's past: what was asked then is answered as it was then, and trained once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionPast } from '../../src/proxy/index.ts'
import { buildRows, placesOf, namesOf, type SessionLog, type TreeMember, treeOf } from '../../src/trajectory/index.ts'
import { checkSession } from '../../src/trajectory/fsck/session-checks.ts'
import {
  chat,
  type Harness,
  harnesses,
  messages,
  model,
  responses,
  sameTools,
  tidyScript,
  type Tools,
} from './harnesses.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  await engine.control('/scripts', tidyScript)
  paddock = await startProxy(engine.url)
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

interface Played {
  readonly harness: Harness
  readonly stream: boolean
  readonly tools?: Tools
  readonly strategy?: 'record' | 'splice'
  readonly past?: SessionPast
}

/** Sessions of one test, a harness in each. */
async function play({ harness, stream, tools = sameTools, strategy = 'record', past }: Played): Promise<SessionLog> {
  const session = await paddock.open({ policy: { strategy }, ...(past === undefined ? {} : { past }) })
  try {
    await harness(session, { stream, tools })
  } finally {
    await paddock.proxy.closeSession(session.id)
  }
  return session.log()
}

const pastOf = (log: SessionLog, at: number, o: Partial<SessionPast> = {}): SessionPast => ({
  log,
  ancestors: [log.session],
  until: log.calls[at]?.intent.id ?? 'none',
  onDivergence: 'refuse',
  ...o,
})

const promptOf = async (log: SessionLog, at: number) =>
  (await engine.generation(log.calls[at]?.intent.id)).promptTokenIds
const phases = (log: SessionLog) =>
  log.events.flatMap((event) => (event.kind === 'replay' ? [[event.phase, event.of] as const] : []))
const rowsOf = (log: SessionLog) => buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't' })

/** Tokens that are trained on, over sessions together; each segment once. */
function trained(logs: readonly SessionLog[]): number {
  let sum = 0
  for (const log of logs) for (const { mask } of rowsOf(log).rows) for (const bit of mask) sum += bit
  return sum
}
const sampled = (log: SessionLog) =>
  log.segments.reduce((sum, { origin, tokens }) => sum + (origin === 'sampled' ? tokens.length : 0), 0)

describe.each(Object.entries(harnesses))('%s', (_, harness) => {
  it.each([
    { stream: false, strategy: 'record' as const, at: 1 },
    { stream: true, strategy: 'record' as const, at: 2 },
    { stream: false, strategy: 'splice' as const, at: 2 },
    { stream: true, strategy: 'splice' as const, at: 3 },
  ])(
    'a child goes on where its parent stood (stream $stream, $strategy, call $at)',
    async ({ stream, strategy, at }) => {
      const parent = await play({ harness, stream, strategy })
      const child = await play({ harness, stream, strategy, past: pastOf(parent, at) })
      const ids = parent.calls.map(({ intent }) => intent.id)
      expect(child.session.forkedFrom).toEqual({ sessionId: parent.session.id, callId: ids[at] })
      expect(phases(child)).toEqual([...ids.slice(0, at).map((id) => ['answered', id]), ['arrived', ids[at]]])
      // The first call that the engine was asked has the parent's prompt, to the id; so have all later ones of equal tools.
      for (let call = at; call < child.calls.length; call += 1) {
        expect(await promptOf(child, call)).toEqual(await promptOf(parent, call))
      }
      const own = child.segments.filter(
        ({ callId }) => child.calls.findIndex(({ intent }) => intent.id === callId) < at,
      )
      expect(own.map(({ origin, tokens, logprobs }) => [origin, [...tokens], logprobs])).toEqual(
        parent.segments
          .filter(({ callId }) => ids.indexOf(callId ?? '') < at)
          .map(({ tokens }) => ['replayed', [...tokens], null]),
      )
      expect(checkSession(child)).toEqual([])
      expect(child.calls.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
      // One path each, and over the family every sampled token once.
      expect(rowsOf(child).rows).toHaveLength(1)
      const rows = rowsOf(parent).rows.map(({ tokens }) => [...tokens])
      expect(rows).toContainEqual([...(rowsOf(child).rows[0]?.tokens ?? [])])
      expect(trained([parent, child])).toBe(sampled(parent) + sampled(child))
      expect(sampled(child)).toBeLessThan(sampled(parent))
    },
  )
})

it('children of children stand on what was first sampled, with handles and stored responses of any of them', async () => {
  for (const harness of [responses(true), responses(false), messages]) {
    let log = await play({ harness, stream: true, strategy: 'splice' })
    const family = [log]
    for (const at of [1, 2, 3]) {
      const ancestors = family.map(({ session }) => session)
      log = await play({ harness, stream: true, strategy: 'splice', past: { ...pastOf(log, at), ancestors } })
      family.push(log)
    }
    const origins = new Set(
      family.flatMap(({ segments }) => segments.filter(({ origin }) => origin !== 'replayed').map(({ id }) => id)),
    )
    for (const { segments, calls } of family) {
      for (const { replayOf } of segments) expect(replayOf === null || origins.has(replayOf)).toBe(true)
      expect(calls.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
    }
    expect(await promptOf(log, 3)).toEqual(await promptOf(family[0] ?? log, 3))
    expect(trained(family)).toBe(family.reduce((sum, one) => sum + sampled(one), 0))
  }
})

it('places of a family are worth the mean of who came through them, as their tokens tell it', async () => {
  const members: TreeMember[] = []
  const grow = async (parent: number | null, at: number, reward: number | null): Promise<void> => {
    const from = parent === null ? null : (members[parent]?.log ?? null)
    const log = await play({ harness: chat, stream: false, ...(from === null ? {} : { past: pastOf(from, at) }) })
    const rolloutId = `rollout ${members.length}`
    members.push({ rolloutId, parent: parent === null ? null : `rollout ${parent}`, reward, log })
  }
  await grow(null, 0, 0)
  await grow(0, 2, 1)
  await grow(0, 2, null)
  await grow(0, 3, 0.5)
  // Of a call that was replayed itself, of the first that was asked, and of a later one; then one of those again.
  await grow(1, 1, 1)
  await grow(1, 2, 0.25)
  await grow(1, 3, 1)
  await grow(6, 3, 0)
  // A place is the answers before it, and an answer is the segment that was sampled.
  const pasts = members.map(({ log }) =>
    log.calls.map((_, call) =>
      log.calls.slice(0, call).map(({ commit }) => {
        const segment = log.segments.find(({ id }) => id === commit?.choices[0]?.segmentId)
        return segment?.replayOf ?? segment?.id
      }),
    ),
  )
  const names = namesOf(members)
  const nodes = treeOf(members)
  for (const [index, { log }] of members.entries()) {
    for (const [call, place] of placesOf(log, names).entries()) {
      const through = members.filter(
        (_, other) => JSON.stringify(pasts[other]?.[call]) === JSON.stringify(pasts[index]?.[call]),
      )
      const rewards = through.flatMap(({ reward }) => (reward === null ? [] : [reward]))
      const node = nodes.find((one) => one.call === place)
      expect(node).toMatchObject({
        depth: call,
        rollouts: through.map(({ rolloutId }) => rolloutId),
        count: rewards.length,
        value: rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length,
      })
    }
  }
  expect(nodes.length).toBe(new Set(pasts.flat().map((past) => JSON.stringify(past))).size)
})

it('eight children of one call share its past and nothing else', async () => {
  const parent = await play({ harness: chat, stream: true })
  const children = await Promise.all(
    Array.from({ length: 8 }, () => play({ harness: chat, stream: true, past: pastOf(parent, 2) })),
  )
  expect(new Set(children.flatMap(({ segments }) => segments.map(({ id }) => id))).size).toBe(
    children.reduce((sum, { segments }) => sum + segments.length, 0),
  )
  for (const child of children) expect(await promptOf(child, 2)).toEqual(await promptOf(parent, 2))
  expect(trained([parent, ...children])).toBe([parent, ...children].reduce((sum, log) => sum + sampled(log), 0))
})

describe('a tool that says something else', () => {
  const other: Tools = (turn) => (turn === 1 ? 'done 1 in 0.3 s' : sameTools(turn))

  it.each(Object.entries(harnesses))('is a divergence that is refused, with the place (%s)', async (_, harness) => {
    const parent = await play({ harness, stream: false })
    const session = await paddock.open({ past: pastOf(parent, 3) })
    await expect(harness(session, { stream: false, tools: other })).rejects.toThrow(/in the past/)
    expect(paddock.proxy.sessionStats(session.id)).toMatchObject({
      replaying: true,
      lastError: 'REPLAY_DIVERGED',
      taints: ['REPLAY_DIVERGED'],
    })
    // It stays refused: nobody is answered as if nothing had been.
    await expect(harness(session, { stream: false, tools: sameTools })).rejects.toThrow(/in the past/)
    const log = await session.log()
    expect(phases(log).map(([phase]) => phase)).toEqual(['answered', 'answered', 'diverged', 'diverged'])
    const why = log.events.flatMap((event) =>
      event.kind === 'replay' && event.phase === 'diverged' ? [event.detail] : [],
    )
    expect(why[0]).toContain('done 1')
    expect(why[0]).toContain('done 1 in 0.3 s')
    expect(sampled(log)).toBe(0)
    expect(rowsOf(log).rows).toEqual([])
  })

  it('branches there where that is asked for, and only what is sampled then is trained', async () => {
    const parent = await play({ harness: chat, stream: false })
    const past = pastOf(parent, 3, { onDivergence: 'branch' })
    const child = await play({ harness: chat, stream: false, tools: other, past })
    expect(phases(child).map(([phase]) => phase)).toEqual(['answered', 'answered', 'diverged'])
    expect(child.calls).toHaveLength(parent.calls.length)
    expect(sampled(child)).toBeGreaterThan(0)
    expect(trained([parent, child])).toBe(sampled(parent) + sampled(child))
    expect(checkSession(child)).toEqual([])
  })
})

it('a call that failed is no part of the past: its harness asked again, and the child asks once', async () => {
  const session = await paddock.open()
  await engine.fault({ kind: 'die', at: 'mid_token', token: 3, match: { session: session.id } })
  await expect(chat(session, { stream: true, tools: sameTools })).rejects.toThrow()
  await chat(session, { stream: true, tools: sameTools })
  const parent = await session.log()
  const [broken, again] = parent.calls
  expect([broken?.commit?.outcome.kind, again?.commit?.outcome.kind]).toEqual(['engine_error', 'complete'])
  const child = await play({ harness: chat, stream: true, past: pastOf(parent, 3) })
  expect(phases(child)).toEqual([
    ['answered', again?.intent.id],
    ['answered', parent.calls[2]?.intent.id],
    ['arrived', parent.calls[3]?.intent.id],
  ])
  expect(await promptOf(child, 2)).toEqual(await promptOf(parent, 3))
  expect(checkSession(child)).toEqual([])
})

it('a call beside the conversation may be new, one of the conversation may not be left out', async () => {
  const parent = await play({ harness: chat, stream: false })
  const session = await paddock.open({ past: pastOf(parent, 2) })
  await session.client.completions.create({ model, prompt: 'once', max_tokens: 4 })
  const third = parent.calls[2]
  if (third === undefined) throw new Error('no third call')
  const answer = await session.post(Buffer.from(third.intent.body).toString())
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain('REPLAY_DIVERGED')
  // It has diverged, and what it asks next is not believed to be the past.
  expect((await session.post(Buffer.from(parent.calls[0]?.intent.body ?? []).toString())).status).toBe(400)
})

it('refuses a call that is not there, or of no conversation', async () => {
  const session = await paddock.open()
  await session.client.completions.create({ model, prompt: 'once', max_tokens: 4 })
  const log = await session.log()
  for (const at of [0, 7]) {
    await expect(paddock.open({ past: pastOf(log, at) })).rejects.toMatchObject({ code: 'FORK_REFUSED' })
  }
})
