/**
 * What each page of the viewer keeps to, in a real browser: few nodes, few and small replies, no serious fault of accessibility in light and dark, no page
 * wider than a telephone, no hostile text that gets out, and memory that stays as it is however long one goes from page to page.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { recordStory } from '../lab/story.ts'
import { chromiumProgram, hostile, Viewer } from './viewer.ts'

const source = new URL('../../web/src/', import.meta.url)
/** Where pictures of the pages go, for people to look at; nowhere by default. */
const pictures = process.env.PADDOCK_PICTURES ?? null
const wide = { width: 1280, height: 800 }
const narrow = { width: 390, height: 844 }
/** Characters of one line of a prompt. */
const lineChars = 10 * 2 ** 20

/** Every page, by what is there once it is read. What stands in braces is of the store. */
const pages: Readonly<Record<string, string>> = {
  '/': 'tbody a',
  '/runs/{run}': '.cells a',
  '/runs/{run}?tab=rollouts&cause=scored+0': '.cells a',
  '/runs/{run}?tab=groups': 'tbody a',
  '/runs/{run}?tab=tasks': 'tbody a',
  '/runs/{run}?tab=curves': '.chart',
  '/runs/{run}?tab=failures': 'tbody a',
  '/runs/{run}?tab=nulls': 'tbody td',
  '/runs/{run}?tab=settings': 'pre',
  '/tasks/{task}': 'tbody a',
  '/groups/{group}': 'tbody tr',
  '/rollouts/{rollout}': '.facts',
  '/rollouts/{rollout}?tab=overview': '.facts',
  '/rollouts/{rollout}?tab=tree': '.leaf',
  '/rollouts/{rollout}?tab=timeline': '.timeline li',
  '/rollouts/{rollout}?tab=terminal': '.ran',
  '/rollouts/{rollout}?tab=pictures': '.film img',
  '/rollouts/{child}?tab=training': 'tbody tr',
  '/sessions/{session}': '.answer',
  '/sessions/{session}?view=text': '.answer',
  '/compare/rollouts?a={rollout}&b={child}': '.beside .message',
  '/compare/runs?a={tasks}&b={later}': 'td.good',
  '/search?q=comma': '.hit',
  '/sign-in': 'form',
}

let directory: string
let viewer: Viewer
let page: Page
let names: Readonly<Record<string, string>>
let long: string

describe.skipIf(chromiumProgram === undefined)('every page of the viewer', () => {
  beforeAll(async () => {
    directory = tempDir()
    const store = await openStore(directory)
    const story = await recordStory(store, { hostile })
    const line = `${hostile} ${'x'.repeat(lineChars)}`
    const [huge = ''] = await recordRollouts(store, [
      { reward: 0, turns: 3, question: (seq) => (seq === 1 ? line : `file ${seq}`) },
    ])
    const { groupId, taskDigest } = await store.catalogue.rollout(story.parent)
    long = (await store.recorder.sessions({ rolloutId: huge }))[0]?.id ?? ''
    names = {
      run: story.runId,
      task: taskDigest,
      group: groupId,
      rollout: story.parent,
      child: story.child,
      session: story.parentSession,
      tasks: story.tasksRun,
      later: story.laterRun,
    }
    await store.close()
    viewer = await Viewer.open(directory)
    ;({ page } = viewer)
    if (pictures !== null) await mkdir(pictures, { recursive: true })
  })

  afterAll(async () => {
    await viewer?.close()
  })

  beforeEach(async () => {
    viewer.faults = []
    await page.setViewportSize(wide)
  })

  const filled = (path: string): string => path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? '')

  it('is in the list of this test', async () => {
    const app = await readFile(new URL('app.tsx', source), 'utf8')
    const kinds = [...app.matchAll(/case '([\w-]+)'/g)].map(([, kind = '']) => `/${kind}`)
    expect(
      kinds.filter((kind) => kind !== '/runs' && !Object.keys(pages).some((path) => path.startsWith(kind))),
    ).toEqual([])
    for (const [file, kind] of [
      ['run-view.tsx', '/runs/'],
      ['rollout-view.tsx', '/rollouts/'],
    ] as const) {
      const [, tabs = ''] = /const tabs = \[([^\]]+)\]/.exec(await readFile(new URL(file, source), 'utf8')) ?? []
      for (const [, tab = ''] of tabs.matchAll(/'(\w+)'/g)) {
        expect(
          Object.keys(pages).some((path) => path.startsWith(kind) && path.includes(`tab=${tab}`)),
          tab,
        ).toBe(true)
      }
    }
  })

  it.each(Object.entries(pages))('%s is small, readable and safe', async (path, selector) => {
    const seen = await viewer.fetched(() => viewer.see(filled(path), selector))
    expect(seen.requests).toBeLessThanOrEqual(12)
    expect(seen.bytes).toBeLessThanOrEqual(2 ** 20)
    expect(seen.largest).toBeLessThanOrEqual(512 * 1024)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
    expect(await viewer.escapes()).toEqual([])
    for (const [width, size] of Object.entries({ wide, narrow })) {
      await page.setViewportSize(size)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const name = path.replaceAll(/[^\w]+/g, '-')
        if (pictures !== null)
          await page.screenshot({ path: join(pictures, `page${name}-${width}-${colorScheme}.png`) })
        expect(await viewer.seriousFaults(), `${width} ${colorScheme}`).toEqual([])
      }
    }
    const beyond = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
    expect(await page.evaluate(beyond)).toBe(0)
  })

  it('shows a line of ten megabytes as a part that says so', async () => {
    for (const path of [`/sessions/${long}?call=1`, `/sessions/${long}?call=2&view=text`, '/search?q=xxxxxxxx']) {
      const seen = await viewer.fetched(() => viewer.see(path, path.startsWith('/search') ? '.hit' : '.message'))
      expect(seen.largest).toBeLessThanOrEqual(512 * 1024)
      expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
      expect(await viewer.escapes()).toEqual([])
    }
    await viewer.see(`/sessions/${long}?call=1`, '.message.user')
    expect(await page.textContent('.message.user')).toMatch(/10,\d{3},\d{3} more characters are in the store/)
  })

  it('keeps memory as it is over 200 changes of the page', async () => {
    const paths = Object.entries(pages)
    const change = async (times: number): Promise<void> => {
      for (let count = 0; count < times; count += 1) {
        const [path, selector] = paths[count % paths.length] ?? ['/', 'tbody a']
        await page.evaluate(
          `history.pushState(null, '', ${JSON.stringify(filled(path))}); dispatchEvent(new PopStateEvent('popstate'))`,
        )
        // A handle would keep the page that it is of.
        await (await page.waitForSelector(selector)).dispose()
      }
    }
    await viewer.see('/', 'tbody a')
    await change(4 * paths.length)
    const [heap, nodes] = [await viewer.heapBytes(), await viewer.liveNodes()]
    await change(200)
    expect((await viewer.heapBytes()) - heap).toBeLessThan(2 * 2 ** 20)
    // Of the page and of what left it: what a listener holds on to would be counted.
    expect(await viewer.liveNodes()).toBeLessThan(nodes + 3000)
    expect(viewer.faults).toEqual([])
  })
})
