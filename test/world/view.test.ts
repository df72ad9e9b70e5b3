/**
 * The viewer in a real browser (Debian's Chromium, the launcher and the built pages), over a store of 10,000 rollouts and
 * a session of 1,000 turns. What is bounded is what grows with the store: nodes, bytes, requests, memory; never time.
 */
import { type Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { ViewPages } from '../../src/server/view/pages.ts'
import { recordRollouts, type RecordedRollout } from '../../src/testing/exporter/recorded.ts'
import { openReader, openStore, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { countedReader } from '../lab/counted-reader.ts'
import { trainRun } from '../lab/trained-run.ts'
import { chromiumProgram, hostile, Viewer } from './viewer.ts'

/** Rollouts of the run, the long one among them. */
const rollouts = 10_000
const turns = 1000
/** How often the trainer speaks of each: 90,000 times in all, beside 10,000 rows that it was handed. */
const uses = 9

let directory: string
let viewer: Viewer
let page: Page
let origin: string
let bigRun: string
let session: string

function question(seq: number): string {
  return seq === 501 ? 'x'.repeat(100_000) : seq < 5 ? hostile : `file ${seq}`
}

const kinds: readonly RecordedRollout[] = [
  { reward: 1 },
  { reward: 0 },
  { reward: 'infra_error' },
  { reward: 1, taint: 'engine_died' },
  { reward: null, end: 'infra' },
  { reward: 0.5, end: 'agent_timeout' },
]

/** Puts copies of the recorded rollouts of these kinds into their run, eight to a group, without sessions. */
async function multiply(store: Store, samples: readonly string[]): Promise<void> {
  const { catalogue } = store
  const views = await Promise.all(samples.map((id) => catalogue.rollout(id)))
  const first = await catalogue.group(views[0]?.groupId ?? '')
  for (let at = samples.length + 1; at < rollouts; at += 8) {
    const group = { ...first, id: newId(), promptVariant: `group ${at}` }
    await catalogue.putGroup(group)
    const members = Array.from({ length: Math.min(8, rollouts - at) }, async (_, slot) => {
      const view = views[(at * 7 + slot) % views.length]
      if (view === undefined) return
      const { end, taints, verdicts, runId, harness } = view
      const id = newId()
      await catalogue.putRollout({ id, runId, groupId: group.id, slot, attempt: 0, harness, createdAt: 1 })
      await catalogue.startRollout(id, 2)
      await catalogue.endRollout(id, 3, end ?? 'completed', '')
      for (const cause of taints) await catalogue.taint(id, cause)
      for (const verdict of verdicts) await catalogue.appendVerdict({ ...verdict, id: newId(), rolloutId: id })
    })
    await Promise.all(members)
  }
}

describe.skipIf(chromiumProgram === undefined)('the viewer in a browser', () => {
  beforeAll(async () => {
    directory = tempDir()
    const store = await openStore(directory)
    const [long = '', ...samples] = await recordRollouts(store, [{ reward: 0, turns, question }, ...kinds])
    await multiply(store, samples)
    session = (await store.recorder.sessions({ rolloutId: long }))[0]?.id ?? ''
    await store.catalogue.putRun({ id: newId(), name: hostile, createdAt: 1, config: { note: hostile } })
    bigRun = (await store.catalogue.runs(10)).find(({ name }) => name === 'recorded')?.id ?? ''
    await trainRun(store, bigRun, { uses })
    await store.close()
    viewer = await Viewer.open(directory)
    ;({ page, origin } = viewer)
  })

  afterAll(async () => {
    await viewer?.close()
  })

  beforeEach(() => {
    viewer.faults = []
  })

  it('takes the code out of the address, and signs no second browser in', async () => {
    expect(page.url()).toBe(`${origin}/`)
    const other = await viewer.browser.newContext()
    const second = await other.newPage()
    await second.goto(viewer.link)
    expect(await second.textContent('[role=alert]')).toContain('CONTROL_TOKEN')
    expect(await second.evaluate("fetch('/view/api/runs').then((reply) => reply.status)")).toBe(401)
    await other.close()
  })

  it('shows the first of 10,000 rollouts from few small replies and few nodes, wherever one scrolls', async () => {
    const first = await viewer.fetched(async () => {
      await page.goto(`${origin}/runs/${bigRun}`)
      await page.waitForSelector('.cells a')
    })
    expect(first.requests).toBeLessThanOrEqual(12)
    expect(first.bytes).toBeLessThanOrEqual(2 ** 20)
    expect(first.largest).toBeLessThanOrEqual(512 * 1024)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
    // A run of this size is read in parts, while its first rows are there.
    await viewer.until(`document.querySelector('section [role=status]').textContent === '10,000 rollouts'`)
    const seen = new Set<string>()
    for (const part of [0.25, 0.5, 0.75, 1]) {
      await page.evaluate(
        `{ const box = document.querySelector('.window'); box.scrollTop = box.scrollHeight * ${part} }`,
      )
      await viewer.until(`document.querySelector('.window .row:last-child').ariaRowIndex > ${rollouts * part * 0.98}`)
      await viewer.until(
        "[...document.querySelectorAll('.window .row')].every((row) => row.querySelector('a') !== null)",
      )
      seen.add((await page.textContent('.window .row:last-child a')) ?? '')
      expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
    }
    expect(seen.size).toBe(4)
    expect(await page.getAttribute('[role=table]', 'aria-rowcount')).toBe(String(rollouts + 1))
    expect(viewer.faults).toEqual([])
  })

  it('shows what a trainer said 100,000 times from small replies, and reads a page of it at a time', async () => {
    const { largest } = await viewer.fetched(async () => {
      await page.goto(`${origin}/runs/${bigRun}?tab=curves`)
      await page.waitForSelector('.charts')
      await viewer.until(`document.querySelector('.live').textContent.includes('nothing is running')`)
    })
    expect(largest).toBeLessThanOrEqual(512 * 1024)
    await viewer.until(`document.querySelector('.step').textContent.includes('${uses} steps')`)
    await page.goto(`${origin}/runs/${bigRun}?step=${uses}`)
    await viewer.until(
      `document.querySelector('section [role=status]').textContent.startsWith('10,000 rollouts of step ${uses}')`,
    )
    await using reader = await openReader(directory)
    const watched = countedReader(reader)
    const pages = new ViewPages(watched.reader)
    const first = await pages.run(bigRun)
    expect(first.read.isWhole).toBe(false)
    expect(await pages.rollouts(bigRun)).toHaveLength(rollouts)
    expect([...watched.counted.largest].filter(([, lines]) => lines > 5 * 500)).toEqual([])
    // Again, and nothing came since.
    watched.counted.total = 0
    await expect.poll(async () => (await pages.run(bigRun)).read.isWhole).toBe(true)
    expect(watched.counted.total).toBeLessThan(50)
  })

  it('filters by a cause of failure, keeps it in the address, and opens the same from there', async () => {
    await page.goto(`${origin}/runs/${bigRun}?tab=failures`)
    await page.click('td a:has-text("tainted")')
    await page.waitForSelector('.cells a')
    const total = await page.textContent('section [role=status]')
    expect(new URL(page.url()).searchParams.get('cause')).toBe('tainted')
    await page.reload()
    await page.waitForSelector('.cells a')
    expect(await page.textContent('section [role=status]')).toBe(total)
    expect(Number((total ?? '').replaceAll(/\D/g, ''))).toBeLessThan(rollouts / 2)
  })

  it('steps through rows by keys and opens one; the way back is there', async () => {
    await page.goto(`${origin}/runs/${bigRun}`)
    await page.waitForSelector('.cells a')
    for (const at of [0, 1, 2]) {
      await page.keyboard.press('j')
      await viewer.until(`document.querySelectorAll('.window .cells')[${at}].classList.contains('chosen')`)
    }
    await page.keyboard.press('Enter')
    await page.waitForSelector('.facts')
    expect(page.url()).toContain('/rollouts/')
    await page.click('.crumbs a:has-text("group")')
    await page.waitForSelector('.bar', { state: 'attached' })
    expect(await page.locator('tbody tr').count()).toBe(kinds.length + 1)
  })

  it('reads a session of 1,000 turns in small replies; a line of 100,000 characters is cut and said so', async () => {
    const first = await viewer.fetched(async () => {
      await page.goto(`${origin}/sessions/${session}?call=700`)
      await page.waitForSelector('.strip')
    })
    expect(first.largest).toBeLessThanOrEqual(512 * 1024)
    expect(first.bytes).toBeLessThanOrEqual(2 ** 20)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
    expect(await page.textContent('.call[aria-current] strong')).toBe('700')
    const cut = await viewer.fetched(async () => {
      await page.goto(`${origin}/sessions/${session}?call=501`)
      await page.waitForSelector('.message')
    })
    expect(cut.largest).toBeLessThanOrEqual(512 * 1024)
    expect(await page.textContent('.message.user')).toMatch(/more characters are in the store/)
  })

  it('shows hostile text as text: nothing ran, nothing is hidden', async () => {
    for (const path of ['/', `/sessions/${session}`, `/sessions/${session}?view=text&call=3`]) {
      await page.goto(`${origin}${path}`)
      await page.waitForSelector(path === '/' ? 'bdi' : '.message')
      const text = (await page.textContent('main')) ?? ''
      expect(text).not.toMatch(/\p{Cf}|(?![\t\n])\p{Cc}/u)
      expect(await page.evaluate('window.ran')).toBeUndefined()
      expect(await page.locator('main script, main img, main a[href^="javascript"]').count()).toBe(0)
    }
    expect(await page.textContent('main')).toContain('<script>window.ran=1</script>')
    expect(viewer.faults).toEqual([])
  })

  it('does not grow over 200 page changes', async () => {
    await page.goto(`${origin}/sessions/${session}`)
    await page.waitForSelector('.strip')
    const change = async (times: number): Promise<void> => {
      for (let count = 0; count < times; count += 1) {
        await page.keyboard.press('j')
        await viewer.until(
          `new URLSearchParams(location.search).get('call') !== null && document.querySelector('.facts dd')?.textContent.startsWith(new URLSearchParams(location.search).get('call') + ',')`,
        )
      }
    }
    await change(20)
    const before = await viewer.heapBytes()
    await change(200)
    const after = await viewer.heapBytes()
    expect(after - before).toBeLessThan(4 * 2 ** 20)
  })

  it.each([
    '/',
    '/runs/RUN',
    '/runs/RUN?tab=failures',
    '/runs/RUN?tab=groups',
    '/runs/RUN?tab=tasks',
    '/runs/RUN?tab=curves',
    '/runs/RUN?tab=nulls',
    '/sessions/SESSION',
  ])('has no serious fault of accessibility at %s, light and dark', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.goto(`${origin}${path.replace('RUN', bigRun).replace('SESSION', session)}`)
      await page.waitForSelector('main a')
      expect(await viewer.seriousFaults(), colorScheme).toEqual([])
    }
  })
})
