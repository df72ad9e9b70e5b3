import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import type { Screen } from '../actions/index.ts'
import type { CdpEvent, CdpPipe } from './cdp-pipe.ts'
import { pasteInto, writeClipboard } from './clipboard.ts'
import { launchBrowser } from './launch.ts'
import { GuiPage } from './page.ts'
import {
  attached,
  browserVersion,
  contextCreated,
  downloadBegins,
  downloadProgress,
  nothing,
  targetCreated,
  targetGone,
} from './shapes.ts'
import type { Site } from './site.ts'

/** A download that a page began. */
export interface Download {
  /** Name of its file in {@link downloadDirectory}, once it is there. */
  readonly guid: string
  readonly name: string
  state: 'running' | 'completed' | 'canceled'
  bytes: number
}

export interface BrowserOptions {
  readonly screen: Screen
  readonly site: Site
  /** Longest silence of the browser after a command, in milliseconds. Default 60,000. */
  readonly answerMs?: number
}

/** Where downloads go in the box; only the browser's user can look into it. */
export const downloadDirectory = '/var/lib/browser/downloads'
/** Where files lie that were chosen for a page to upload. */
export const uploadDirectory = '/var/lib/browser/uploads'

/** Downloads beyond this are cancelled, in bytes. */
const maxDownloadBytes = 16 << 20
const maxTabs = 12

/** Removes files of the box. */
type Remove = (paths: readonly string[]) => Promise<unknown>

/**
 * A browser in a box. It has one context at a time, like a private window: {@link GuiBrowser.reset} throws it away with
 * everything that pages have stored and opens a fresh one.
 */
export class GuiBrowser implements AsyncDisposable {
  readonly downloads: Download[] = []
  readonly #pipe: CdpPipe
  readonly #screen: Screen
  #site: Site
  #context: string | null = null
  #tabs: GuiPage[] = []
  #active: GuiPage | null = null
  #tabWaiters: (() => void)[] = []
  /** By the id that the browser gave it. */
  readonly #byGuid = new Map<string, Download>()

  readonly #inWindow: boolean
  /** What pages are told in place of the browser's own name; null: that. */
  #userAgent: string | null = null

  readonly #remove: Remove

  private constructor(
    pipe: CdpPipe,
    screen: Screen,
    site: Site,
    o: { readonly inWindow: boolean; readonly remove?: Remove },
  ) {
    this.#inWindow = o.inWindow
    this.#remove = o.remove ?? (async () => undefined)
    this.#pipe = pipe
    this.#screen = screen
    this.#site = site
    pipe.on((event) => this.#take(event))
  }

  /** Starts the browser, with a first tab at the site's start. Throws `BROWSER_GONE`. */
  static async open(box: Box, o: BrowserOptions): Promise<GuiBrowser> {
    const pipe = launchBrowser(box, o.answerMs === undefined ? {} : { answerMs: o.answerMs })
    const remove: Remove = (paths) => box.exec({ command: ['rm', '-rf', ...paths], user: 'root', cwd: '/' })
    const browser = new GuiBrowser(pipe, o.screen, o.site, { inWindow: false, remove })
    try {
      await browser.#attachToAll()
      await browser.reset(o.site)
      return browser
    } catch (error) {
      await pipe[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Takes the window of a browser that was started on a desktop, and goes to the site's start. Throws `BROWSER_GONE`. */
  static async openInWindow(pipe: CdpPipe, o: { readonly screen: Screen; readonly site: Site }): Promise<GuiBrowser> {
    const browser = new GuiBrowser(pipe, o.screen, o.site, { inWindow: true })
    await browser.#attachToAll()
    await browser.#keepDownloads(null)
    await browser.#whenTabs(() => browser.#tabs.length > 0)
    await browser.navigate(o.site.start)
    return browser
  }

  /** Null while the browser lives. */
  get death(): string | null {
    return this.#pipe.death
  }

  get tabs(): readonly GuiPage[] {
    return this.#tabs
  }

  /** The tab in front. Throws `BROWSER_GONE` when there is none. */
  get page(): GuiPage {
    const page = this.#active ?? this.#tabs.at(-1)
    if (page === undefined) throw new PaddockError('BROWSER_GONE', 'The browser has no tab')
    return page
  }

  /**
   * A fresh context at the start of `site`: no cookie, storage, cache, download or text on the clipboard of before is left.
   * Throws a RangeError for a browser in a window: a desktop is started anew.
   */
  async reset(site: Site): Promise<void> {
    if (this.#inWindow) throw new RangeError('A desktop is started anew, with all of its programs.')
    const before = this.#context
    this.#context = null
    this.#site = site
    this.#tabs = []
    this.#active = null
    this.downloads.length = 0
    if (before !== null) {
      await this.#ask('Target.disposeBrowserContext', { browserContextId: before })
      await this.#remove([downloadDirectory, uploadDirectory])
    }
    const { browserContextId } = await this.#pipe.send(
      'Target.createBrowserContext',
      { disposeOnDetach: true },
      { answer: contextCreated },
    )
    this.#context = browserContextId
    await this.#keepDownloads(browserContextId)
    await this.openTab()
    // The clipboard is the browser's, not the context's.
    if (before !== null) await writeClipboard(this.page, '')
    await this.navigate(site.start)
  }

  /** What the clipboard holds as text. */
  async readClipboard(): Promise<string> {
    const front = this.page
    await this.openTab()
    const empty = this.page
    try {
      return await pasteInto(empty)
    } finally {
      await this.closeTab(this.#tabs.indexOf(empty))
      await this.activate(this.#tabs.indexOf(front))
    }
  }

  /** Opens an empty tab and brings it to the front. */
  async openTab(): Promise<void> {
    const { targetId } = await this.#pipe.send(
      'Target.createTarget',
      { url: 'about:blank', ...(this.#context === null ? {} : { browserContextId: this.#context, ...this.#screen }) },
      { answer: targetCreated },
    )
    await this.#whenTabs(() => this.#tabs.some((tab) => tab.targetId === targetId))
    const index = this.#tabs.findIndex((tab) => tab.targetId === targetId)
    await this.activate(index)
  }

  /** Brings a tab to the front; false when there is none of this index. */
  async activate(index: number): Promise<boolean> {
    const found = this.#tabs[index]
    if (found === undefined) return false
    await found.ready
    await found.send('Page.bringToFront', {}, nothing)
    this.#active = found
    this.#wakeTabs()
    return true
  }

  /** Closes a tab; false when there is none of this index, or only this one. */
  async closeTab(index: number): Promise<boolean> {
    const found = this.#tabs[index]
    if (found === undefined || this.#tabs.length === 1) return false
    await this.#ask('Target.closeTarget', { targetId: found.targetId })
    await this.#whenTabs(() => !this.#tabs.includes(found))
    return true
  }

  /** Goes to an address of the task's. The answer comes when the navigation has begun, or says why it could not. */
  async navigate(url: string): Promise<void> {
    await this.page.ready
    await this.page.act('Page.navigate', { url })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pipe[Symbol.asyncDispose]()
  }

  /** Every page target, now and later, is ours to watch before it runs. */
  async #attachToAll(): Promise<void> {
    const { userAgent } = await this.#pipe.send('Browser.getVersion', {}, { answer: browserVersion })
    if (userAgent.includes('Headless')) this.#userAgent = userAgent.replace('Headless', '')
    await this.#ask('Target.setAutoAttach', {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      filter: [{ type: 'page', exclude: false }, { exclude: true }],
    })
  }

  async #keepDownloads(browserContextId: string | null): Promise<void> {
    await this.#ask('Browser.setDownloadBehavior', {
      behavior: 'allowAndName',
      ...(browserContextId === null ? {} : { browserContextId }),
      downloadPath: downloadDirectory,
      eventsEnabled: true,
    })
  }

  async #ask(method: string, params: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#pipe.send(method, params, { answer: nothing })
  }

  #take(event: CdpEvent): void {
    switch (event.method) {
      case 'Target.attachedToTarget':
        return this.#attach(event.params)
      case 'Target.targetDestroyed':
      case 'Target.detachedFromTarget':
        return this.#detached(event.params)
      case 'Browser.downloadWillBegin': {
        const { guid, suggestedFilename } = downloadBegins.parse(event.params)
        const download: Download = { guid, name: suggestedFilename, state: 'running', bytes: 0 }
        this.#byGuid.set(guid, download)
        this.downloads.push(download)
        this.#wakeTabs()
        return
      }
      case 'Browser.downloadProgress':
        return this.#progress(event.params)
    }
    if (event.session === null) return
    this.#tabs.find((tab) => tab.session === event.session)?.take(event)
  }

  #attach(params: unknown): void {
    const { sessionId, targetInfo } = attached.parse(params)
    const foreign = !this.#inWindow && targetInfo.browserContextId !== this.#context
    if (foreign || targetInfo.url.startsWith('devtools:') || this.#tabs.length >= maxTabs) {
      // The browser's own first tab, its developer tools, and popups without end: they stay unseen and stopped.
      void this.#ask('Target.closeTarget', { targetId: targetInfo.targetId }).catch(() => undefined)
      return
    }
    const page: GuiPage = new GuiPage({
      pipe: this.#pipe,
      targetId: targetInfo.targetId,
      session: sessionId,
      site: { start: '', serve: (request) => this.#site.serve(request) },
      screen: this.#screen,
      inWindow: this.#inWindow,
      userAgent: this.#userAgent,
      isFront: () => this.#active === page,
    })
    this.#tabs = [...this.#tabs, page]
    // A tab that a page opens comes to the front, as it would for a person.
    this.#active = page
    this.#wakeTabs()
  }

  #detached(params: unknown): void {
    const { targetId } = targetGone.safeParse(params).data ?? { targetId: null }
    this.#tabs = this.#tabs.filter((tab) => tab.targetId !== targetId)
    if (this.#active?.targetId === targetId) this.#active = this.#tabs.at(-1) ?? null
    this.#wakeTabs()
  }

  #progress(params: unknown): void {
    const { guid, totalBytes, receivedBytes, state } = downloadProgress.parse(params)
    const download = this.#byGuid.get(guid)
    if (download === undefined) return
    download.bytes = receivedBytes
    if (state === 'completed' || state === 'canceled') {
      download.state = state
      // The browser removes it, too: as work of the lowest priority, which a busy machine never comes to.
      const left = ['', '.crdownload'].map((ending) => `${downloadDirectory}/${guid}${ending}`)
      if (state === 'canceled') this.#remove(left).catch(() => undefined)
      this.#wakeTabs()
    } else if (Math.max(totalBytes, receivedBytes) > maxDownloadBytes) {
      void this.#ask('Browser.cancelDownload', { guid, browserContextId: this.#context }).catch(() => undefined)
    }
  }

  #wakeTabs(): void {
    for (const tab of this.#tabs) tab.wake()
    const waiters = this.#tabWaiters
    this.#tabWaiters = []
    for (const wake of waiters) wake()
  }

  async #whenTabs(test: () => boolean): Promise<void> {
    while (!test() && this.#pipe.death === null) {
      await Promise.race([new Promise<void>((resolve) => this.#tabWaiters.push(resolve)), this.#pipe.gone])
    }
  }
}
