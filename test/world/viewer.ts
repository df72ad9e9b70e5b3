/** `paddock view` and Debian's Chromium looking at it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import axe from 'axe-core'
import { type Browser, chromium, type Page, type Response } from 'playwright-core'
import { expect } from 'vitest'
import { launcher } from '../cli/paddock.ts'

/** The browser's program; undefined where there is none. */
export const chromiumProgram = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)

/** Text that an agent could write to get out of its place: markup, an address that runs code, what hides and reorders. */
export const hostile =
  '<script>window.ran=1</script><img src=x onerror="window.ran=1"><a href="javascript:window.ran=1">x</a>' +
  '\u001b[31mred\u001b[0m \u202Eesrever\u202C \u200Bhidden {{7*7}} </pre></bdi>'

/** What the browser fetched while something was done. */
export interface Fetched {
  readonly requests: number
  readonly bytes: number
  readonly largest: number
}

/** A signed-in browser. */
export class Viewer {
  readonly browser: Browser
  readonly page: Page
  readonly origin: string
  readonly link: string
  /** Errors that pages threw or told, and dialogs. */
  faults: string[] = []
  readonly #process: ChildProcess

  private constructor(process: ChildProcess, browser: Browser, page: Page, at: { origin: string; link: string }) {
    this.#process = process
    this.browser = browser
    this.page = page
    this.origin = at.origin
    this.link = at.link
    page.on('pageerror', (error) => this.faults.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error') this.faults.push(message.text())
    })
    page.on('dialog', (dialog) => {
      this.faults.push(`dialog ${dialog.message()}`)
      void dialog.dismiss()
    })
  }

  /** Starts the viewer over a closed data directory and signs a browser in. */
  static async open(directory: string): Promise<Viewer> {
    const viewer = spawn(launcher, ['view', directory, '--port', '0', '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface({ input: viewer.stdout ?? process.stdin }), 'line')
    const browser = await chromium.launch({ executablePath: chromiumProgram ?? '', args: ['--no-sandbox'] })
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
    const own = new Viewer(viewer, browser, page, JSON.parse(String(line)) as { origin: string; link: string })
    await page.goto(own.link)
    await page.waitForSelector('table a')
    return own
  }

  /** Opens a page of the viewer and waits for a part of it. */
  async see(path: string, selector: string): Promise<void> {
    await this.page.goto(`${this.origin}${path}`)
    await this.page.waitForSelector(selector)
  }

  async fetched(work: () => Promise<unknown>): Promise<Fetched> {
    const sizes: Promise<number>[] = []
    const listener = (response: Response): void => {
      sizes.push(
        response.body().then(
          (body) => body.length,
          () => 0,
        ),
      )
    }
    this.page.on('response', listener)
    await work()
    this.page.off('response', listener)
    const all = await Promise.all(sizes)
    return { requests: all.length, bytes: all.reduce((total, size) => total + size, 0), largest: Math.max(0, ...all) }
  }

  /** Waits until an expression is true in the page, whose own policy lets no text run as code. */
  async until(expression: string): Promise<void> {
    await expect.poll(() => this.page.evaluate(expression), { interval: 20 }).toBe(true)
  }

  nodes(): Promise<number> {
    return this.page.evaluate('document.querySelectorAll("*").length')
  }

  /** Bytes that scripts of the page hold, after a collection. */
  async heapBytes(): Promise<number> {
    const client = await this.page.context().newCDPSession(this.page)
    await client.send('HeapProfiler.collectGarbage')
    const { usedSize } = await client.send('Runtime.getHeapUsage')
    await client.detach()
    return usedSize
  }

  /** Nodes that the page holds, those outside of its document also, after a collection. */
  async liveNodes(): Promise<number> {
    const client = await this.page.context().newCDPSession(this.page)
    await client.send('HeapProfiler.collectGarbage')
    const { nodes } = await client.send('Memory.getDOMCounters')
    await client.detach()
    return nodes
  }

  /** Faults of accessibility of the page that is shown, serious and critical ones. */
  async seriousFaults(): Promise<readonly string[]> {
    await this.page.evaluate(axe.source)
    return this.page.evaluate(`axe.run().then(({ violations }) => violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => id + ': ' + nodes[0].html))`)
  }

  /** What is wrong with a page at which recorded text is shown: code that ran, characters that hide. */
  async escapes(): Promise<readonly string[]> {
    const text = (await this.page.textContent('main')) ?? ''
    return [
      ...(/\p{Cf}|(?![\t\n])\p{Cc}/u.test(text) ? ['a hidden character'] : []),
      ...((await this.page.evaluate('window.ran')) === undefined ? [] : ['code ran']),
      ...((await this.page.locator('main script, main [onerror], main a[href^="javascript"]').count()) === 0
        ? []
        : ['markup']),
      ...this.faults,
    ]
  }

  async close(): Promise<void> {
    await this.browser.close()
    if (this.#process.exitCode !== null) return
    this.#process.kill('SIGTERM')
    await once(this.#process, 'exit')
  }
}
