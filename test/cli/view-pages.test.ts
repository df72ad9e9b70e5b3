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
