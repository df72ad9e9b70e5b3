/** Words are found wherever they stand, by steps that each look at a part, and a run is followed by what came since. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { type SearchHit, searchStep, serveView, type ViewServer } from '../../src/server/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openReader, openStore, type Store, type StoreReader } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { recordStory, type Story } from '../lab/story.ts'
import { paddock } from './here.ts'

const turns = 100
let directory: string
let data: string
let store: Store
let reader: StoreReader
let server: ViewServer
let cookie: string
let story: Story
let long: string
let longRun: string
/** Most rows that one query of the reader gave. */
let mostRows = 0

/** The reader, watched: how many rollouts a query gives. */
function watched(of: StoreReader): StoreReader {
  const rollouts: StoreReader['catalogue']['rollouts'] = async (filter) => {
    const found = await of.catalogue.rollouts(filter)
    mostRows = Math.max(mostRows, found.length)
    return found
  }
  return { ...of, catalogue: { ...of.catalogue, rollouts } }
}

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  store = await openStore(data)
  story = await recordStory(store, { hostile: 'a <b>Needle.*</b> here' })
  ;[long = ''] = await recordRollouts(store, [
    { reward: 0, turns, question: (seq) => (seq % 40 === 7 ? `the straw ${seq}` : `file ${seq}`) },
  ])
  longRun = (await store.catalogue.rollout(long)).runId
  await store.recorder.flush()
  await writeFile(join(directory, 'index.html'), '<!doctype html><title>viewer</title>')
  reader = await openReader(data)
  server = await serveView(watched(reader), { port: 0, webDirectory: directory })
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
  await store?.close()
})

async function page(path: string) {
  const reply = await fetch(`${server.origin}/view/api${path}`, { headers: { cookie } })
  return { status: reply.status, value: JSON.parse(await reply.text()) }
}

/** All hits, by as many steps as it takes. */
async function all(q: string, run?: string, budgetMs = 0) {
  const hits: SearchHit[] = []
  let from: string | null = null
  let steps = 0
  do {
    const asked = { q, ...(run === undefined ? {} : { run }), ...(from === null ? {} : { from }) }
    const part = await searchStep(reader, asked, { budgetMs })
    hits.push(...part.hits)
    expect(part.next).not.toBe(from ?? '')
    from = part.next
    steps += 1
  } while (from !== null)
  return { hits, steps }
}

describe('search', () => {
  it('finds words where they were said, once each, with the call at which they were new', async () => {
    const { hits, steps } = await all('the STRAW', longRun)
    expect(hits.map(({ where, call, match, rolloutId }) => [where, call?.seq, match, rolloutId])).toEqual([
      ['prompt', 7, 'the straw', long],
      ['prompt', 47, 'the straw', long],
      ['prompt', 87, 'the straw', long],
    ])
    expect(steps).toBeGreaterThan(2)
  })

  it('goes by no pattern, and looks at verdicts, commands, tool results and answers', async () => {
    const { hits } = await all('needle.*</B>')
    expect(new Set(hits.map(({ where }) => where))).toEqual(
      new Set(['verdict', 'command', 'tool result', 'answer', 'event']),
    )
    expect(hits.find(({ where }) => where === 'answer')?.call).toEqual({ sessionId: story.parentSession, seq: 2 })
    expect((await all('n..dle')).hits).toEqual([])
  })

  it('finds a rollout by a part of its id, by a label, and by why it failed', async () => {
    expect((await all(long.slice(-12))).hits.some(({ where, rolloutId }) => where === 'id' && rolloutId === long)).toBe(
      true,
    )
    expect((await all(story.parent)).hits.find(({ where }) => where === 'label')).toMatchObject({
      of: 'fork.rollout',
      rolloutId: story.child,
    })
    expect((await all('scored 0', longRun)).hits).toMatchObject([{ where: 'cause', rolloutId: long }])
    expect((await all('harness_rewrite')).hits.map(({ where }) => where)).toContain('finding')
  })

  it('says by steps the same as at once, and refuses what is no question', async () => {
    const places = ({ hits }: { readonly hits: readonly SearchHit[] }) =>
      hits.map(({ where, rolloutId, call, event }) => JSON.stringify([where, rolloutId, call, event]))
    expect(places(await all('log'))).toEqual(places(await all('log', undefined, 10_000)))
    for (const asked of ['q=x', 'q=long%20enough&from=nowhere', 'q=long&from=a/1/2', 'q=long&what=else']) {
      expect(await page(`/search?${asked}`)).toMatchObject({ status: 400, value: { error: {} } })
    }
    expect((await page('/search?q=log&run=nothing')).status).toBe(404)
  })

  it('is a command too', async () => {
    const found = await paddock(['search', 'the straw', '--data', data, '--json'])
    expect(found.code, found.err).toBe(0)
    expect(JSON.parse(found.out)).toMatchObject({ whole: true, hits: [{ call: { seq: 7 } }, {}, {}] })
    const some = await paddock(['search', 'the straw', '--data', data, '--limit', '2'])
    expect(some.out.trim().split('\n')).toHaveLength(2)
    expect(some.out).toContain('call 7  prompt user')
    const nothing = await paddock(['search', 'nobody said this', '--data', data])
    expect(nothing).toMatchObject({ code: 0, out: '', err: expect.stringContaining('Nothing found in ') })
  })
})

describe('a run that goes on', () => {
  it('is followed by what came since: rollouts, ends and late verdicts, and says where one stands now', async () => {
    const [first = ''] = await recordRollouts(store, [{ reward: null, end: null }, { reward: 1 }])
    const { runId, groupId, harness } = await store.catalogue.rollout(first)
    const before = (await page(`/runs/${runId}/pulse`)).value
    expect(before).toMatchObject({ rollouts: 2, of: 2, running: 1 })
    const id = newId()
    await store.catalogue.putRollout({ id, runId, groupId, slot: 9, attempt: 0, harness, createdAt: 1 })
    await store.catalogue.endRollout(first, 5, 'agent_timeout', '')
    await expect.poll(async () => (await page(`/runs/${runId}/pulse`)).value).toMatchObject({ rollouts: 3, running: 1 })
    const now = (await page(`/runs/${runId}/rollouts?order=down&places=${first},${id}`)).value
    expect(now.places).toEqual({ [id]: 0, [first]: 2 })
    expect(now.rows.at(-1).end).toBe('agent_timeout')
    const [verdict] = (await store.catalogue.rollout(now.rows[1].id)).verdicts
    await store.catalogue.appendVerdict({
      ...verdict,
      id: newId(),
      rolloutId: now.rows[1].id,
      status: 'scored',
      reward: 0.25,
    } as Parameters<Store['catalogue']['appendVerdict']>[0])
    await expect.poll(async () => (await page(`/runs/${runId}`)).value.tally).toMatchObject({ meanReward: 0.25 })
    const { version } = (await page(`/runs/${runId}/pulse`)).value
    expect(version).toBeGreaterThan(before.version)
  })

  it('a rollout has another mark when something is recorded of it', async () => {
    const before = (await page(`/rollouts/${long}/pulse`)).value
    expect(before.isRunning).toBe(false)
    await store.catalogue.label(long, 'seen', 'yes')
    await expect.poll(async () => (await page(`/rollouts/${long}/pulse`)).value.mark).not.toBe(before.mark)
  })

  it('is read in parts, however long it is', async () => {
    const [like = ''] = await recordRollouts(store, [{ reward: 1, group: 'many' }])
    const view = await store.catalogue.rollout(like)
    for (let slot = 1; slot < 1200; slot += 1) {
      await store.catalogue.putRollout({ ...view, id: newId(), slot, attempt: 0, createdAt: 1 })
    }
    mostRows = 0
    await expect.poll(async () => (await page(`/runs/${view.runId}/pulse`)).value.rollouts).toBe(1200)
    for (const tab of ['', '/rollouts', '/groups', '/tasks', '/curves']) {
      expect((await page(`/runs/${view.runId}${tab}`)).status).toBe(200)
    }
    expect(mostRows).toBeLessThanOrEqual(500)
  })
})

describe('the terminal of a rollout', () => {
  it('has the commands in order, with what they wrote as it was written', async () => {
    const { value } = await page(`/rollouts/${story.parent}/terminal`)
    expect(value).toMatchObject({ total: 1, next: null })
    expect(value.rows[0]).toMatchObject({ n: 0, role: 'agent', how: 'exit 2', isBad: true })
    expect(value.rows[0].stdout).toBe('a <b>Needle.*</b> here')
    expect(value.rows[0].cut).toBe(70_000 + 12_000)
    const timeline = await page(`/rollouts/${story.parent}/timeline?after=${value.rows[0].event}&limit=1`)
    expect(timeline.value.lines[0].title).toContain('agent command')
  })
})
