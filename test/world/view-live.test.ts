/** Pages that follow a Paddock which writes, search, and the replay of a terminal, in a real browser beside the owner of the store. */
import { mkdir } from 'node:fs/promises'
import { createServer, connect, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openStore, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { recordStory, type Story } from '../lab/story.ts'
import { chromiumProgram, hostile, Viewer } from './viewer.ts'

const mostBytes = 512 * 1024
const rollouts = 400
/** Where pictures of the pages go, for people to look at; nowhere by default. */
const pictures = process.env.PADDOCK_PICTURES ?? null

let directory: string
let store: Store
let viewer: Viewer
let page: Page
let story: Story
let run: string
let terminal: string
let like: Awaited<ReturnType<Store['catalogue']['rollout']>>
let slot = 0

/** One more rollout of the run, without a session. */
async function another(end: 'completed' | null = 'completed'): Promise<string> {
  const id = newId()
  slot += 1
  const { runId, groupId, harness } = like
  await store.catalogue.putRollout({ id, runId, groupId, slot, attempt: 0, harness, createdAt: 1 })
  if (end !== null) await store.catalogue.endRollout(id, 3, end, '')
  return id
}

async function command(rolloutId: string, nth: number, stdout: string): Promise<void> {
  await store.recorder.appendEvent({
    id: newId(),
    at: 1000 + 400 * nth,
    rolloutId,
    sessionId: null,
    kind: 'exec',
    role: 'agent',
    command: `step ${nth}`,
    outcome: 'exited',
    exitCode: nth % 7 === 3 ? 1 : 0,
    signal: null,
    durationMs: 120,
    stdout,
    stderr: '',
    truncatedBytes: 0,
    callId: null,
  })
}

/** A way to the viewer that can be cut, and mended. */
class Way {
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  port = 0

  async open(to: number): Promise<void> {
    this.#server = createServer((one) => {
      const other = connect(to, '127.0.0.1')
      for (const [from, into] of [
        [one, other],
        [other, one],
      ] as const) {
        this.#sockets.add(from)
        from.on('error', () => into.destroy()).pipe(into)
      }
    })
    await new Promise<void>((resolve) => this.#server?.listen(this.port, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (typeof address === 'object' && address !== null) this.port = address.port
  }

  async cut(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
    await new Promise<void>((resolve) => (this.#server === null ? resolve() : this.#server.close(() => resolve())))
  }
}

describe.skipIf(chromiumProgram === undefined)('pages that follow', () => {
  beforeAll(async () => {
    directory = tempDir()
    store = await openStore(directory)
    story = await recordStory(store, { hostile })
    const [first = ''] = await recordRollouts(store, [{ reward: 1, group: 'live', task: 'live' }])
    like = await store.catalogue.rollout(first)
    run = like.runId
    for (let nth = 1; nth < rollouts; nth += 1) await another()
    terminal = await another(null)
    const colours =
      '\u001b[1;32mok\u001b[0m 3 passed, \u001b[31mfailed\u001b[39m 1\u001b]8;;http://evil.test\u0007link\u001b]8;;\u0007'
    for (let nth = 1; nth <= 60; nth += 1)
      await command(terminal, nth, nth === 2 ? `${colours} ${hostile}` : `line ${nth}`)
    await store.recorder.flush()
    viewer = await Viewer.open(directory)
    ;({ page } = viewer)
    if (pictures !== null) await mkdir(pictures, { recursive: true })
  })

  afterAll(async () => {
    await viewer?.close()
    await store?.close()
  })

  beforeEach(() => {
    viewer.faults = []
  })

  /** What every page keeps to. */
  const keepsBounds = async (name: string, path: string, selector: string): Promise<void> => {
    const { largest } = await viewer.fetched(() => viewer.see(path, selector))
    expect(largest).toBeLessThanOrEqual(mostBytes)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
    expect(await viewer.escapes()).toEqual([])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      if (pictures !== null) await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) })
      expect(await viewer.seriousFaults(), colorScheme).toEqual([])
    }
  }

  it('a search tells how far it is, and its hits lead to where the words stand, marked', async () => {
    await keepsBounds('search', '/search?q=comma', '.hit')
    await viewer.until(`document.querySelector('[role=status]').textContent.includes('That is all.')`)
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.message mark')
    expect(page.url()).toContain('find=comma')
    expect(await page.textContent('.message mark')).toBe('comma')
    await keepsBounds('search-hostile', `/search?q=${encodeURIComponent('onerror=')}`, '.hit mark')
    expect(await page.textContent('.hit .around')).toContain('<img src=x')
    await page.click('.hit:has-text("command")')
    await page.waitForSelector('.timeline mark')
    expect(await viewer.escapes()).toEqual([])
  })

  it('a search is asked by hand, in one run, and finds nothing in words', async () => {
    await viewer.see(`/runs/${run}`, '.cells a')
    await page.click('a:has-text("Search in this run")')
    await page.fill('#words', 'nobody said this')
    await page.keyboard.press('Enter')
    await viewer.until(`document.querySelector('[role=status]')?.textContent.includes('That is all.') === true`)
    expect(await page.textContent('[role=status]')).toMatch(/^0 hits; looked at 4\d\d of 4\d\d rollouts/)
    expect(new URL(page.url()).searchParams.get('run')).toBe(run)
  })

  it('rows of a run that goes on appear at the place of their order; what is in sight and chosen stays', async () => {
    await keepsBounds('live', `/runs/${run}?order=down`, '.cells a')
    expect(await page.textContent('.live')).toBe('live, 1 running')
    const top = await another()
    await viewer.until(
      `document.querySelector('.window .cells a')?.textContent === '${top.replaceAll('-', '').slice(-8)}'`,
    )
    await page.evaluate(`{ const box = document.querySelector('.window'); box.scrollTop = 30 * 200 + 7 }`)
    await viewer.until(`Number(document.querySelector('.window .row')?.ariaRowIndex) > 180`)
    await viewer.until(`[...document.querySelectorAll('.window .row')].every((row) => row.querySelector('a') !== null)`)
    await page.keyboard.press('j')
    // The first row is chosen by a key, so the list goes to it.
    await viewer.until(
      `document.querySelector('.cells.chosen a')?.textContent === '${top.replaceAll('-', '').slice(-8)}'`,
    )
    await page.evaluate(`{ const box = document.querySelector('.window'); box.scrollTop = 30 * 200 + 7 }`)
    const sight = `(() => { const box = document.querySelector('.window').getBoundingClientRect(); return [...document
      .querySelectorAll('.window .row')].filter((row) => row.getBoundingClientRect().bottom > box.top + 1)[0]
      ?.querySelector('a')?.textContent ?? '' })()`
    await viewer.until(`${sight} !== ''`)
    const seen = await page.evaluate(sight)
    const added = [await another(), await another(), await another()]
    await viewer.until(`document.querySelector('[role=table]').ariaRowCount === '${rollouts + 2 + added.length + 1}'`)
    await viewer.until(`${sight} === '${String(seen)}'`)
    await page.evaluate(`document.querySelector('.window').scrollTop = 0`)
    await viewer.until(`document.querySelectorAll('.window .cells')[3]?.classList.contains('chosen') === true`)
    expect(viewer.faults).toEqual([])
  })

  it('a rollout that goes on is followed, and its end is told', async () => {
    const id = await another(null)
    await command(id, 1, 'first')
    await store.recorder.flush()
    await viewer.see(`/rollouts/${id}?tab=timeline`, '.timeline li')
    expect(await page.textContent('.live')).toBe('live, running')
    await command(id, 2, 'second')
    await store.recorder.flush()
    await viewer.until(`document.querySelectorAll('.timeline li').length === 2`)
    await store.catalogue.endRollout(id, 9, 'completed', '')
    await viewer.until(`document.querySelector('.live').textContent === 'live, ended'`)
  })

  it('a connection that dies is told in words, keeps what is shown, and is mended', async () => {
    const way = new Way()
    await way.open(Number(new URL(viewer.origin).port))
    // Cookies know no ports: the browser is signed in there too.
    await page.goto(`http://127.0.0.1:${way.port}/runs/${run}?order=down`)
    await page.waitForSelector('.cells a')
    await way.cut()
    await viewer.until(
      `/^stale since \\d\\d:\\d\\d:\\d\\d: The viewer does not answer/.test(document.querySelector('.live').textContent)`,
    )
    expect(await page.locator('.cells a').count()).toBeGreaterThan(10)
    if (pictures !== null) await page.screenshot({ path: join(pictures, 'stale.png') })
    const missed = await another()
    await way.open(Number(new URL(viewer.origin).port))
    await viewer.until(`document.querySelector('.live').textContent.startsWith('live')`)
    await viewer.until(
      `document.querySelector('.window .cells a')?.textContent === '${missed.replaceAll('-', '').slice(-8)}'`,
    )
    await page.goto(viewer.origin)
    await way.cut()
  })

  it('does not grow while it follows', async () => {
    await viewer.see(`/runs/${run}?order=down`, '.cells a')
    const client = await page.context().newCDPSession(page)
    const heap = async (): Promise<number> => {
      await client.send('HeapProfiler.collectGarbage')
      return (await client.send('Runtime.getHeapUsage')).usedSize
    }
    const shown = async (): Promise<void> => {
      const id = await another()
      await viewer.until(
        `document.querySelector('.window .cells a')?.textContent === '${id.replaceAll('-', '').slice(-8)}'`,
      )
    }
    await shown()
    await shown()
    const before = await heap()
    for (let times = 0; times < 5; times += 1) await shown()
    expect((await heap()) - before).toBeLessThan(2 * 2 ** 20)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
  })

  it('a terminal is replayed step by step, by keys and by itself, and runs nothing', async () => {
    await keepsBounds('terminal', `/rollouts/${terminal}?tab=terminal&step=2`, '.ran.now')
    expect(await page.textContent('.ran.now .ansi-green')).toBe('ok')
    expect(await page.locator('.screen a').count()).toBe(0)
    expect(await page.textContent('.ran.now')).not.toContain('evil.test')
    await page.keyboard.press('l')
    await viewer.until(`document.querySelector('.ran.now .command').textContent === '$ step 3'`)
    expect(await page.textContent('section')).toContain('exit 1')
    await page.keyboard.press('h')
    await page.keyboard.press('p')
    await viewer.until(`Number(new URLSearchParams(location.search).get('step')) >= 5`)
    await page.keyboard.press('p')
    await page.click('a:has-text("in the timeline")')
    await page.waitForSelector('.timeline li')
    await keepsBounds('terminal-story', `/rollouts/${story.parent}?tab=terminal`, '.ran.now')
  })
})
