/** The questions of `docs/reference/viewer-questions.md` in a real browser: each is answered within the clicks that the page says. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { recordStory, type Story } from '../lab/story.ts'
import { type Question, questions } from './view-questions.ts'
import { chromiumProgram, Viewer } from './viewer.ts'

const reference = fileURLToPath(new URL('../../docs/reference/viewer-questions.md', import.meta.url))

let directory: string
let viewer: Viewer
let story: Story

/** Clicks its way to the answer; resolves to how many clicks it were. */
async function clicksTo({ clicks, at, answer }: Question): Promise<number> {
  const { page } = viewer
  await viewer.see('/', 'table a')
  let count = 0
  for (const step of clicks) {
    if (typeof step === 'string') {
      await page.locator(step).first().click()
      count += 1
    } else {
      await page.keyboard.type(step.type)
      await page.keyboard.press('Enter')
    }
  }
  await expect
    .poll(async () => {
      const texts = await page.locator(at).allTextContents()
      return texts.map((text) => text.trim().replaceAll(/\s+/g, ' ')).join(' ')
    })
    .toMatch(answer)
  return count
}

describe.skipIf(chromiumProgram === undefined)('questions of users', () => {
  beforeAll(async () => {
    directory = tempDir()
    const store = await openStore(directory)
    story = await recordStory(store, { hostile: 'strange' })
    await store.close()
    viewer = await Viewer.open(directory)
  })

  afterAll(async () => {
    await viewer?.close()
  })

  it('are answered within the clicks that the reference says', async () => {
    const lines = (await readFile(reference, 'utf8')).split('\n').filter((line) => /^\| \d+ \|/.test(line))
    const said = lines.map((line) => line.split('|').map((cell) => cell.trim()))
    const needed = []
    for (const [at, question] of questions(story).entries()) {
      const typed = question.clicks.some((step) => typeof step !== 'string') ? ' and words' : ''
      needed.push([String(at + 1), question.asks, `${await clicksTo(question)}${typed}`])
    }
    expect(needed).toHaveLength(25)
    expect(said.map(([, nr, asks, clicks]) => [nr, asks, clicks])).toEqual(needed)
  })
})
