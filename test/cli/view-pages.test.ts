/** What the viewer's pages of one rollout and of runs get, over a store whose story is known. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveView, type ViewServer } from '../../src/server/index.ts'
import { openReader, openStore, type StoreReader } from '../../src/trajectory/index.ts'
import { recordStory, type Story } from '../lab/story.ts'

let directory: string
let reader: StoreReader
let server: ViewServer
let cookie: string
let story: Story

async function ask(path: string): Promise<Response> {
  return fetch(`${server.origin}/view/api${path}`, { headers: { cookie } })
}

async function page(path: string) {
  const reply = await ask(path)
  const value = JSON.parse(await reply.text())
  expect([reply.status, value.error?.code]).toEqual([200, undefined])
  return value
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-view-'))
  const store = await openStore(join(directory, 'data'))
  story = await recordStory(store, { hostile: '<b>bold</b>' })
  await store.close()
  await writeFile(join(directory, 'index.html'), '<!doctype html><title>viewer</title>')
  reader = await openReader(join(directory, 'data'))
  server = await serveView(reader, { port: 0, webDirectory: directory })
  const signedIn = await fetch(`${server.origin}/view/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: new URL(server.link()).hash.replace('#code=', '') }),
  })
  cookie = String(signedIn.headers.get('set-cookie')).split(';')[0] ?? ''
})

afterAll(async () => {
  await server?.close()
  await reader?.close()
  await rm(directory, { recursive: true, force: true })
})

type Fields = Record<string, unknown>

describe('the tree of a rollout', () => {
  it('hangs each call on the answer that it goes on from, and draws what begins anew beside it', async () => {
    const { total, rows, next } = await page(`/rollouts/${story.parent}/tree`)
    expect([total, next]).toEqual([6, null])
    const drawn = rows.map((row: Fields) => [row['class'], row['parent'], row['lane'], row['out'], row['through']])
    expect(drawn).toEqual([
      ['main', null, 0, [0, 1], []],
      ['title', null, 2, [], [0, 1]],
      ['subagent', null, 2, [2], [0, 1]],
      ['main', 0, 0, [], [1, 2]],
      ['main', 0, 1, [], [2]],
      ['subagent', 2, 2, [], []],
    ])
    expect(rows[4].forks).toEqual([{ cause: 'harness_rewrite', fromSeq: 3, tokensAffected: 3 }])
  })

  it('says of each answer whether it trains, and why not', async () => {
    const { rows } = await page(`/rollouts/${story.parent}/tree`)
    expect(rows.map((row: Fields) => [row['trained'], row['sampledTokens'], row['maskReason']])).toEqual([
      [3, 3, null],
      [0, 3, 'class'],
      [3, 3, null],
      [3, 3, null],
      [3, 3, null],
      [3, 3, null],
    ])
  })

  it('comes in parts', async () => {
    const { rows, next } = await page(`/rollouts/${story.parent}/tree?after=1&limit=2`)
    expect([rows.map((row: Fields) => row['seq']), next]).toEqual([[1, 2], 3])
  })
})

describe('the family of a rollout', () => {
  it('is the same from each of its members, with what places are worth and what was replayed', async () => {
    const { lines, left } = await page(`/rollouts/${story.child}/family`)
    expect(left).toBe(0)
    expect(lines).toMatchObject([
      { kind: 'rollout', depth: 0, rolloutId: story.parent, reward: 0, replayedCalls: 0, trainedTokens: 15 },
      { kind: 'place', depth: 1, call: 2, sessionId: story.parentSession, seq: 3, value: 0.5, count: 2 },
      // The first of its two answers was sampled by its parent: no token of it is sampled, or trained, here again.
      {
        kind: 'rollout',
        depth: 2,
        rolloutId: story.child,
        reward: 1,
        replayedCalls: 1,
        sampledTokens: 3,
        trainedTokens: 3,
      },
    ])
    expect((await page(`/rollouts/${story.parent}/family`)).lines).toEqual(lines)
  })
})

describe('the timeline of a rollout', () => {
  it('tells events in order with what they belong to, and what of a text is left out', async () => {
    const { total, lines, stages } = await page(`/rollouts/${story.parent}/timeline?limit=6`)
    expect([total, stages]).toEqual([206, [{ stage: 'boot', durationMs: 898 }]])
    const titles = lines.map((line: Fields) => [line['n'], line['title'], line['isBad']])
    expect(titles.slice(0, 5)).toEqual([
      [0, 'stage boot begins', false],
      [1, 'stage boot ends', false],
      [2, 'agent command, exit 2', true],
      [3, 'tool <b>bold</b>: ok, 3 pictures', false],
      [4, 'refused pypi.org:443 (deny)', true],
    ])
    expect(lines[2].call).toEqual({ sessionId: story.parentSession, seq: 3 })
    expect(lines[2].texts.map((text: Fields) => [text['name'], text['cut']])).toEqual([
      ['command', 0],
      ['stdout', 70_000],
      ['stderr', 12_000],
    ])
  })

  it('comes in parts that fit a reply, without a gap', async () => {
    const seen: number[] = []
    for (let after: number | null = 0; after !== null;) {
      const reply: Response = await ask(`/rollouts/${story.parent}/timeline?limit=500&after=${after}`)
      const text = await reply.text()
      expect(text.length).toBeLessThan(512 * 1024)
      const part = JSON.parse(text)
      seen.push(...part.lines.map((line: { n: number }) => line.n))
      after = part.next
    }
    expect(seen).toEqual(Array.from({ length: 206 }, (_, n) => n))
  })
})

describe('pictures', () => {
  it('are what tools gave, with the call they belong to', async () => {
    const { total, rows } = await page(`/rollouts/${story.parent}/pictures`)
    expect([total, rows.map((row: Fields) => row['sha256'])]).toEqual([3, story.pictures])
    expect(rows[0]).toMatchObject({ width: 320, height: 200, call: { sessionId: story.parentSession, seq: 3 } })
  })

  it.each([
    ['a PNG is shown', 0, 'image/png', /^inline$/],
    ['an SVG is a file to save, whatever the recording calls it', 1, 'application/octet-stream', /^attachment/],
    ['markup is a file to save', 2, 'application/octet-stream', /^attachment/],
  ])('%s', async (_what, nth, type, disposition) => {
    const { headers, status } = await ask(`/blobs/${story.pictures[nth]}`)
    expect([status, headers.get('content-type')]).toEqual([200, type])
    expect(headers.get('content-disposition')).toMatch(disposition)
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('are named by digest only', async () => {
    expect((await ask(`/blobs/${'0'.repeat(64)}`)).status).toBe(404)
    expect((await ask('/blobs/..%2f..%2fcatalogue.sqlite')).status).toBe(400)
    expect((await fetch(`${server.origin}/view/api/blobs/${story.pictures[0]}`)).status).toBe(401)
  })
})

describe('what a trainer did', () => {
  it('stands with each row: weights, age, steps, and null for what it did not say', async () => {
    const { rows } = await page(`/rollouts/${story.parent}/training`)
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({ labels: ['w1'], age: 2, round: 0 })
    const said = rows[0].dispositions.map((one: Fields) => [one['step'], one['use'], one['outcome'], one['tokens']])
    expect(said).toEqual([
      [3, 0, 'used', null],
      [4, 1, 'used', [2, 5]],
    ])
    const other = await page(`/rollouts/${story.child}/training`)
    expect(other.rows[0].dispositions).toMatchObject([
      { step: 4, outcome: 'filtered', advantage: null, rewardUsed: null },
    ])
  })

  it('finds the rollouts of a step and of weights', async () => {
    const ids = async (query: string) =>
      (await page(`/runs/${story.runId}/rollouts?${query}`)).rows.map((row: { id: string }) => row.id)
    expect(await ids('step=3')).toEqual([story.parent])
    expect(await ids('step=4')).toEqual([story.parent, story.child])
    expect(await ids('step=5')).toEqual([])
    expect(await ids('weights=w2')).toEqual([story.child])
  })
})
