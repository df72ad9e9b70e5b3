/**
 * `node scripts/picture.ts` takes the picture of the README, docs/viewer.png: a rollout with its verdict, and an answer of it with
 * its tokens, as `./paddock view` shows what `./paddock quickstart` recorded. It needs Chromium (Debian's package `chromium`).
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chromium, type Page } from 'playwright-core'

const root = fileURLToPath(new URL('..', import.meta.url))
const paddock = join(root, 'paddock')
const target = join(root, 'docs/viewer.png')
const width = 1000

interface Attempts {
  readonly rollouts: readonly { readonly rolloutId: string; readonly reward: number | null }[]
}

const data = await mkdtemp(join(tmpdir(), 'paddock-picture-'))
try {
  const { stdout } = await promisify(execFile)(paddock, ['--data', data, '--json', 'quickstart'])
  const { rollouts }: Attempts = JSON.parse(stdout)
  const good = rollouts.find(({ reward }) => reward === 1)
  if (good === undefined) throw new Error(`no attempt of the quickstart was scored 1: ${stdout}`)
  await take(good.rolloutId)
} finally {
  await rm(data, { recursive: true })
}

async function take(rolloutId: string): Promise<void> {
  const viewer = spawn(paddock, ['view', data, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: viewer.stdout }), 'line')
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  try {
    const { origin, link }: { origin: string; link: string } = JSON.parse(String(line))
    const page = await browser.newPage({ viewport: { width, height: 700 }, colorScheme: 'light' })
    await page.goto(link)
    await page.waitForSelector('table a')
    await page.goto(`${origin}/rollouts/${rolloutId}`)
    const session = page.locator('a[href^="/sessions/"]').first()
    await session.waitFor()
    const verdict = await page.screenshot({ clip: await above(page, 'Sessions', 0) })
    await session.click()
    await page.getByText('Show the text').waitFor()
    const tokens = await page.screenshot({ clip: await above(page, 'Show the text', 105) })
    await page.goto('about:blank')
    await page.setContent(
      [verdict, tokens].map((part) => `<img src="data:image/png;base64,${part.toString('base64')}">`).join(''),
    )
    await page.addStyleTag({ content: 'body { margin: 0 } img { display: block }' })
    await page.screenshot({ path: target, fullPage: true })
  } finally {
    await browser.close()
    viewer.kill('SIGINT')
  }
}

/** The part of a page from `top` down to where a text begins. */
async function above(page: Page, text: string, top: number) {
  const box = await page.getByText(text).first().boundingBox()
  if (box === null) throw new Error(`the page does not show "${text}"`)
  return { x: 0, y: top, width, height: Math.floor(box.y) - top }
}
