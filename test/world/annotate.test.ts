/** A person labels and scores a rollout in Debian's Chromium; what another site makes of the same browser comes to nothing. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createToken, revokeToken } from '../../src/access/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openReader, openStore } from '../../src/trajectory/index.ts'
import { launcher } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
)

let directory: string
let viewer: ChildProcess
let browser: Browser
let context: BrowserContext
let page: Page
let origin: string
let rolloutId: string
let faults: string[]

async function recorded() {
  await using reader = await openReader(directory)
  const { verdicts, labels } = await reader.catalogue.rollout(rolloutId)
  return { verdicts, labels }
}

describe.skipIf(program === undefined)('annotation in a browser', () => {
  beforeAll(async () => {
    directory = tempDir()
    const store = await openStore(directory)
    rolloutId = (await recordRollouts(store, [{ reward: 0 }]))[0] ?? ''
    await store.close()
    viewer = spawn(launcher, ['view', '--annotate', '--data', directory, '--port', '0', '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface({ input: viewer.stdout ?? process.stdin }), 'line')
    const told = JSON.parse(String(line)) as { link: string; origin: string }
    origin = told.origin
    browser = await chromium.launch({ executablePath: program ?? '', args: ['--no-sandbox'] })
    context = await browser.newContext()
    page = await context.newPage()
    faults = []
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(told.link)
    await page.waitForSelector('table a')
  })

  afterAll(async () => {
    await browser?.close()
    if (viewer?.exitCode === null) {
      viewer.kill('SIGTERM')
      await once(viewer, 'exit')
    }
  })

  it('gives a verdict with its reason and source, which the page then shows in force', async () => {
    await page.goto(`${origin}/rollouts/${rolloutId}`)
    await page.fill('input[name=reward]', '0.75')
    await page.fill('input[name=reason]', 'the answer is right <b>but</b> late')
    await page.fill('input[name=source]', 'review')
    await page.click('button:has-text("Give verdict")')
    await page.waitForSelector('.verdict strong:has-text("0.75")')
    expect(await page.textContent('.verdict')).toContain('control-token')
    expect((await recorded()).verdicts.at(-1)).toMatchObject({
      reward: 0.75,
      evidence: 'the answer is right <b>but</b> late',
      verifier: { id: 'late/review' },
      token: 'control-token',
    })
  })

  it('takes a number away for a reason, and says what is wrong without one', async () => {
    await page.goto(`${origin}/rollouts/${rolloutId}`)
    await page.click('button:has-text("Give verdict")')
    expect(await page.textContent('.annotate [role=alert]')).toContain('VERDICT_REFUSED')
    await page.fill('input[name=reason]', 'nobody can tell')
    await page.click('button:has-text("Give verdict")')
    await page.waitForSelector('.verdict:has-text("nobody can tell")')
    expect((await recorded()).verdicts.at(-1)).toMatchObject({ reward: null, reason: 'nobody can tell' })
  })

  it('labels a rollout, and the page has no serious finding of axe', async () => {
    await page.goto(`${origin}/rollouts/${rolloutId}`)
    await page.fill('input[name=name]', 'quality')
    await page.fill('input[name=value]', 'good')
    await page.click('button:text-is("Label")')
    await page.waitForSelector('.facts dt:has-text("quality")')
    expect((await recorded()).labels).toMatchObject({ quality: 'good' })
    // The page's policy lets no text run as code: axe comes over the browser's own interface.
    const client = await context.newCDPSession(page)
    await client.send('Runtime.evaluate', { expression: axe.source })
    const found = await client.send('Runtime.evaluate', {
      expression:
        'axe.run().then(({ violations }) => JSON.stringify(violations.map(({ id, impact }) => [id, impact])))',
      awaitPromise: true,
      returnByValue: true,
    })
    const violations = JSON.parse(String(found.result.value)) as readonly (readonly [string, string])[]
    expect(violations.filter(([, impact]) => impact === 'serious' || impact === 'critical')).toEqual([])
    expect(faults).toEqual([])
  })

  it('writes nothing for a page of another site, in the browser that is signed in', async () => {
    const before = await recorded()
    const site: Server = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<form method="post" enctype="text/plain" action="${origin}/view/api/rollouts/${rolloutId}/verdicts">
        <input name='{"source":"evil","reward":1,"evidence":"' value='"}'></form>`)
    }).listen(0, '127.0.0.1')
    await once(site, 'listening')
    const address = `http://localhost:${(site.address() as AddressInfo).port}/`
    const form = await context.newPage()
    await form.goto(address)
    const [answer] = await Promise.all([
      form.waitForResponse((response) => response.url().startsWith(origin)),
      form.evaluate('document.forms[0].submit()'),
    ])
    expect(answer.status()).toBe(403)
    await form.close()
    // A page of its own: the form's is still on its way to the answer, and would break off a visit.
    const evil = await context.newPage()
    await evil.goto(address)
    const sent = `fetch('${origin}/view/api/rollouts/${rolloutId}/verdicts', { method: 'POST', credentials: 'include',
      headers: { 'content-type': 'application/json', 'x-paddock-annotate': '1' }, body: '{"source":"evil","reward":1}' })
      .then(() => 'answered', () => 'refused')`
    expect(await evil.evaluate(sent)).toBe('refused')
    const read = `fetch('${origin}/view/api/runs', { credentials: 'include' }).then(() => 'answered', () => 'refused')`
    expect(await evil.evaluate(read)).toBe('refused')
    await evil.close()
    site.closeAllConnections()
    site.close()
    expect(await recorded()).toEqual(before)
  })

  it('lets a person sign in with a token of her own, until it is revoked', async () => {
    const { token } = await createToken(directory, { role: 'annotate', name: 'ann', days: 1, now: Date.now() })
    const other = await (await browser.newContext()).newPage()
    await other.goto(`${origin}/sign-in`)
    await other.fill('input[name=token]', token)
    await other.click('button:has-text("Sign in")')
    await other.waitForSelector('table a')
    expect(await other.evaluate('document.cookie')).toBe('')
    await other.goto(`${origin}/rollouts/${rolloutId}`)
    await other.fill('input[name=reward]', '1')
    await other.click('button:has-text("Give verdict")')
    await other.waitForSelector('.verdict strong:has-text("1")')
    expect((await recorded()).verdicts.at(-1)).toMatchObject({ reward: 1, token: 'ann' })
    await revokeToken(directory, 'ann', Date.now())
    await other.fill('input[name=reward]', '0')
    await other.click('button:has-text("Give verdict")')
    await other.waitForSelector('.annotate [role=alert]:has-text("CONTROL_TOKEN")')
    await other.context().close()
  })
})
