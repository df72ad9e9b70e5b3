/** What the viewer's pages of one rollout and of runs get, over a store whose story is known. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveView, type ViewServer } from '../../src/server/index.ts'
import { openReader, openStore, type StoreReader } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
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
  directory = tempDir()
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
      [4, 'refused packages.example:443 (deny)', true],
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

describe('a run over time', () => {
  it('has what its trainer told by step, with a gap where it said nothing', async () => {
    const { steps, allSteps, curves } = await page(`/runs/${story.runId}/curves`)
    expect([steps.length, allSteps]).toEqual([20, 20])
    const named = new Map<string, readonly (number | null)[]>(
      curves.map(({ name, values }: { name: string; values: readonly (number | null)[] }) => [name, values]),
    )
    expect(named.get('loss')?.slice(0, 2)).toEqual([1, 0.5])
    expect(named.get('kl <b>bold</b>')?.slice(5, 8)).toEqual([0, null, 2])
    expect(named.get('mismatch: mean_abs')?.slice(9, 11)).toEqual([null, 0.11])
    expect(named.get('rows: used')?.slice(2, 5)).toEqual([1, 1, null])
    expect(named.get('rows: left out')?.slice(2, 5)).toEqual([0, 1, null])
    expect(named.get('rows: mean reward used')?.[3]).toBe(0)
  })

  it('has reward, length, age and what has no number by weights, and in order of making', async () => {
    const { weights, parts } = await page(`/runs/${story.runId}/curves`)
    expect(weights).toMatchObject([
      { label: 'w1', ordinal: 1, rollouts: 1, meanReward: 0, meanTokens: 110, nullShare: 0, meanAge: 2 },
      { label: 'w2', ordinal: 2, rollouts: 1, meanReward: 1, meanTokens: 111, nullShare: 0, meanAge: 1 },
    ])
    expect(parts.map((part: Fields) => [part['meanReward'], part['meanTokens'], part['meanAge']])).toEqual([
      [1, null, null],
      [0, 110, 2],
      [1, 111, 1],
    ])
  })
})

describe('the share of missing numbers', () => {
  it('is counted by cause, task and weights, and counts tainted rollouts', async () => {
    const { all, rows, versions, total } = await page(`/runs/${story.tasksRun}/nulls`)
    const causes = { engine_died: 1, infra: 1, infra_error: 1 }
    expect(all).toEqual({ ended: 7, nulls: 3, share: 3 / 7, causes, emptyTools: 0 })
    expect([total, versions]).toEqual([3, []])
    expect(rows).toEqual([
      { name: 'unknown', ended: 1, nulls: 1, share: 1, causes: { infra: 1 } },
      { name: 'half', ended: 3, nulls: 1, share: 1 / 3, causes: { engine_died: 1 } },
      { name: 'hard', ended: 3, nulls: 1, share: 1 / 3, causes: { infra_error: 1 } },
    ])
    const sampled = { ended: 1, nulls: 0, share: 0, causes: {} }
    expect((await page(`/runs/${story.runId}/nulls`)).versions).toEqual([
      { name: 'w1', ...sampled },
      { name: 'w2', ...sampled },
    ])
  })

  it('is the same share over time', async () => {
    const { parts } = await page(`/runs/${story.tasksRun}/curves`)
    expect(parts.map((part: Fields) => part['nullShare'])).toEqual([0, 0, 1, null, 1, 0, 0, 1])
  })
})

describe('tasks', () => {
  it('of a run stand the hardest first, with what has no number apart', async () => {
    const { total, rows } = await page(`/runs/${story.tasksRun}/tasks`)
    expect(total).toBe(3)
    const rates = rows.map((row: Fields) => [
      row['name'],
      row['passed'],
      row['effective'],
      row['without'],
      row['running'],
    ])
    expect(rates).toEqual([
      ['hard', 0, 2, 1, 0],
      ['half', 1, 2, 1, 1],
      ['unknown', 0, 0, 1, 0],
    ])
  })

  it('are told over runs, harnesses and weights', async () => {
    const { digest } = (await page(`/runs/${story.runId}/tasks`)).rows[0]
    const task = await page(`/tasks/${digest}`)
    expect(task.all).toEqual({ passed: 2, effective: 4, without: 0, running: 0 })
    const rows = task.rows.map((row: Fields) => [row['runId'], row['harness'], row['weights'], row['passed']])
    expect(rows).toHaveLength(4)
    expect(rows).toEqual(
      expect.arrayContaining([
        [story.runId, 'script', 'w1', 0],
        [story.runId, 'script', 'w2', 1],
        [story.runId, 'script', null, 1],
        [story.laterRun, 'script', null, 0],
      ]),
    )
    expect((await ask(`/tasks/${'0'.repeat(64)}`)).status).toBe(404)
    expect((await ask('/tasks/x')).status).toBe(400)
  })
})

describe('two rollouts', () => {
  const compared = (a: string, b: string) => page(`/compare/rollouts?a=${a}&b=${b}`)

  it('are aligned at the first difference, by token ids', async () => {
    const { by, same, position, isTaskSame, pairs, a, b } = await compared(story.parent, story.child)
    expect([by, same, position, isTaskSame]).toEqual(['tokens', 1, 0, true])
    expect(pairs).toEqual([
      { a: 0, b: 0, isPromptSame: true, isAnswerSame: true },
      { a: 3, b: 1, isPromptSame: false, isAnswerSame: true },
      { a: 4, b: null, isPromptSame: false, isAnswerSame: false },
    ])
    expect([a.reward, a.calls, b.reward, b.calls]).toEqual([0, 3, 1, 2])
  })

  it('of two tokenizers are compared by their words, and it says so', async () => {
    const { by, same, pairs } = await compared(story.like, story.other)
    expect([by, same, pairs.length]).toEqual(['words', 2, 2])
    expect(await compared(story.like, story.like)).toMatchObject({ by: 'tokens', same: 2, position: null })
  })

  it.each(['a=x&b=y', 'a=ID', 'a=ID&b=ID&c=1'])('%s is one clear error', async (query) => {
    expect((await ask(`/compare/rollouts?${query.replaceAll('ID', story.like)}`)).status).toBe(400)
  })
})

describe('two runs', () => {
  it('are paired by task: flips first, null where nobody knows', async () => {
    const { paired, gained, lost, onlyA, onlyB, rows, a, b } = await page(
      `/compare/runs?a=${story.tasksRun}&b=${story.laterRun}`,
    )
    expect({ paired, gained, lost, onlyA, onlyB }).toEqual({ paired: 2, gained: 1, lost: 1, onlyA: 0, onlyB: 1 })
    expect(rows.map((row: Fields) => [row['name'], row['flip']])).toEqual([
      ['hard', 'gained'],
      ['half', 'lost'],
      ['recorded', null],
      ['unknown', null],
    ])
    expect([rows[0].a, rows[0].b]).toMatchObject([
      { passed: 0, effective: 2, without: 1, mean: 0 },
      { passed: 1, effective: 1, without: 0, mean: 1 },
    ])
    expect([rows[2].a, rows[3].a.mean, rows[3].b.mean]).toEqual([null, null, 1])
    expect([a.pairedMean, b.pairedMean, a.meanTokens]).toEqual([0.375, 0.5, null])
  })

  it('tell the settings that differ, and no others', async () => {
    const { settings } = await page(`/compare/runs?a=${story.tasksRun}&b=${story.setRun}`)
    expect(settings).toEqual([
      { path: 'model.name', a: null, b: '"m"' },
      { path: 'note', a: null, b: '"<b>bold</b>"' },
      { path: 'seeds.0', a: null, b: '1' },
      { path: 'seeds.1', a: null, b: '2' },
    ])
    expect((await page(`/compare/runs?a=${story.tasksRun}&b=${story.laterRun}`)).settings).toEqual([])
  })
})
