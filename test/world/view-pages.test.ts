/** Pages of the viewer beyond its lists, in a real browser, over a store whose story is known and a rollout of 1,000 turns. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { recordStory, type Story } from '../lab/story.ts'
import { chromiumProgram, hostile, Viewer } from './viewer.ts'

const turns = 1000
const mostBytes = 512 * 1024

let directory: string
let viewer: Viewer
let page: Page
let story: Story
let long: string

describe.skipIf(chromiumProgram === undefined)('pages of the viewer in a browser', () => {
  beforeAll(async () => {
    directory = tempDir()
    const store = await openStore(directory)
    story = await recordStory(store, { hostile })
    ;[long = ''] = await recordRollouts(store, [
      { reward: 0, turns, question: (seq) => (seq < 3 ? hostile : `file ${seq}`) },
    ])
    await store.close()
    viewer = await Viewer.open(directory)
    ;({ page } = viewer)
  })

  afterAll(async () => {
    await viewer?.close()
  })

  beforeEach(() => {
    viewer.faults = []
  })

  /** What every page keeps to. */
  const keepsBounds = async (path: string, selector: string): Promise<void> => {
    const { largest } = await viewer.fetched(() => viewer.see(path, selector))
    expect(largest).toBeLessThanOrEqual(mostBytes)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
    expect(await viewer.escapes()).toEqual([])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await viewer.seriousFaults(), colorScheme).toEqual([])
    }
  }

  it('a tree of 1,000 calls is drawn where one looks', async () => {
    await keepsBounds(`/rollouts/${long}?tab=tree`, '.leaf')
    await page.evaluate(`{ const box = document.querySelector('.window'); box.scrollTop = box.scrollHeight }`)
    await viewer.until(`document.querySelector('.window .row:last-child strong')?.textContent === '${turns - 1}'`)
    expect(await viewer.nodes()).toBeLessThanOrEqual(3000)
  })

  it('a fork is told with its cause, and leads to its call and to the rollout that goes on from it', async () => {
    await keepsBounds(`/rollouts/${story.parent}?tab=tree`, '.leaf')
    expect(await page.textContent('.leaf:has(em)')).toContain('fork: harness_rewrite')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await viewer.until(`document.querySelectorAll('.leaf')[1]?.classList.contains('chosen')`)
    await page.keyboard.press('Enter')
    await page.waitForSelector('.answer')
    expect(page.url()).toContain(`/sessions/${story.parentSession}?call=1`)
    await page.goBack()
    await page.click('.family li:last-child a')
    await page.waitForSelector('.leaf:has-text("replayed")')
    expect(page.url()).toContain(`/rollouts/${story.child}`)
  })

  it('a timeline tells commands, tools and stages as text, in parts', async () => {
    await keepsBounds(`/rollouts/${story.parent}?tab=timeline`, '.timeline li')
    expect(await page.textContent('.timeline')).toContain('agent command, exit 2')
    await page.click('a:has-text("Later events")')
    await viewer.until(
      `document.querySelector('[role=status]:not(.live)')?.textContent.includes('here 1 to') === false`,
    )
    expect(await viewer.escapes()).toEqual([])
  })

  it('pictures are shown, and what is none is never run', async () => {
    await keepsBounds(`/rollouts/${story.parent}?tab=pictures`, '.film img')
    await viewer.until(`document.querySelector('.film img').naturalWidth === 1`)
    const shown = await page.evaluate(`[...document.querySelectorAll('.film img')].map((one) => one.naturalWidth)`)
    expect(shown).toEqual([1, 0, 0])
  })

  it('what a trainer did leads to the rollouts of that step', async () => {
    await keepsBounds(`/rollouts/${story.child}?tab=training`, 'tbody tr')
    await page.click('tbody td a:has-text("4")')
    await page.waitForSelector('.cells a')
    expect(await page.textContent('[role=status]:not(.live)')).toContain('2 rollouts')
    expect(await page.locator('.cells').count()).toBe(2)
  })

  it('a curve leads to the rollouts of a step, by mouse and by keys', async () => {
    await keepsBounds(`/runs/${story.runId}?tab=curves`, '.chart')
    expect(await page.textContent('.charts')).toContain('mismatch: mean_abs')
    await page.fill('.step input', '3')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.cells a')
    expect(new URL(page.url()).searchParams.get('step')).toBe('3')
    expect(await page.locator('.cells').count()).toBe(1)
    await page.goBack()
    await page
      .locator('.picks')
      .first()
      .click({ position: { x: 2, y: 20 } })
    await viewer.until(`new URLSearchParams(location.search).get('step') === '1'`)
  })

  it('tasks stand the hardest first and lead to their rollouts', async () => {
    await keepsBounds(`/runs/${story.tasksRun}?tab=tasks`, 'tbody tr')
    expect(await page.textContent('tbody tr')).toContain('hard')
    await page.click('tbody a:has-text("half")')
    await page.waitForSelector('h2:has-text("Instruction")')
    await keepsBounds(new URL(page.url()).pathname, 'meter')
    await page.click('tbody a')
    await page.waitForSelector('.cells a')
    expect(await page.textContent('[role=status]:not(.live)')).toContain('4 rollouts')
  })

  it('two members of a group are set side by side at their first difference', async () => {
    await viewer.see(`/rollouts/${story.parent}`, '.crumbs')
    await page.click('.crumbs a:has-text("group")')
    // By slot: an id may hold the same digits.
    const ofSlot = (slot: number): string => `tr:has(td:nth-child(2):text-is("${slot}"))`
    await page.click(`${ofSlot(10)} a:has-text("compare")`)
    await page.click(`${ofSlot(11)} a:has-text("with the marked one")`)
    await page.waitForSelector('.beside .message')
    const { pathname, search } = new URL(page.url())
    await keepsBounds(`${pathname}${search}`, '.beside .message')
    expect(await page.textContent('main')).toContain('The first call is the same. Call 2 differs in its prompt')
    expect(await page.textContent('.beside')).toContain('I add the comma and run it.')
    await page.keyboard.press('k')
    await viewer.until(`new URLSearchParams(location.search).get('at') === '1'`)
    await page.waitForSelector('.quiet:has-text("This pair is the same")')
  })

  it('two runs are paired by task, and their settings are set side by side', async () => {
    await keepsBounds(`/compare/runs?a=${story.tasksRun}&b=${story.laterRun}`, 'td.good')
    expect(await page.textContent('[role=status]')).toContain('1 gained in b, 1 lost')
    await keepsBounds(`/compare/runs?a=${story.tasksRun}&b=${story.setRun}`, 'td:has-text("model.name")')
  })
})
