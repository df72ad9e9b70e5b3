import type { z } from 'zod'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import type { Screen } from '../actions/index.ts'
import { type CdpEvent, type CdpPipe, CdpRefusal } from './cdp-pipe.ts'
import {
  dialogOpening,
  evaluated,
  frameEvent,
  frameNavigated,
  isolatedWorld,
  navigatedWithin,
  nothing,
  requestPaused,
  requestSent,
} from './shapes.ts'
import { type Site, type SiteResponse, unreachable } from './site.ts'

export interface Dialog {
  readonly type: string
  readonly message: string
}

export interface PageParts {
  readonly pipe: CdpPipe
  readonly targetId: string
  readonly session: string
  readonly site: Site
  readonly screen: Screen
  /** True: it is in a window of a desktop, which gives it size and focus. */
  readonly inWindow: boolean
  /** What its pages are told of the browser; null: the browser's own. */
  readonly userAgent: string | null
  /** Whether this tab is in front: the browser acknowledges no input of one that is not. */
  readonly isFront: () => boolean
}

const worldName = 'paddock'

/** A user agent with the hints that go with it: without them pages of TLS are told of a browser of no brand. */
function told(userAgent: string): Readonly<Record<string, unknown>> {
  const version = /Chrome\/(\d+)/.exec(userAgent)?.[1] ?? ''
  const brands = [{ brand: 'Chromium', version }]
  const machine = { platform: 'Linux', platformVersion: '', architecture: 'x86', model: '', mobile: false }
  return { userAgent, userAgentMetadata: { brands, ...machine } }
}

/**
 * One tab of the browser. What it asks for is answered by the task's site; its own JavaScript is never trusted: we look at
 * it through an isolated world and through the browser's accessibility tree.
 */
export class GuiPage {
  readonly targetId: string
  url = 'about:blank'
  /** A JavaScript dialog that waits for an answer; the page stands still meanwhile. */
  dialog: Dialog | null = null
  /** Set when the renderer has crashed, or the site could not answer: no fault of the agent. */
  fault: PaddockError | null = null
  /** Dialogs that the page has opened. */
  dialogs = 0
  /** Resolves when the tab is watched and runs; never rejects, a fault is in {@link fault}. */
  readonly ready: Promise<void>
  readonly #o: PageParts
  #loading = false
  #inFlight = 0
  /**
   * Requests of the page's own scripts, as its renderer tells them. It tells them in order with what we ask it, and a script
   * goes on only where the answer has come to it: on a busy machine that is long after we have given it.
   */
  readonly #asked = new Set<string>()
  /** The isolated world of the document that is there now. */
  #world: Promise<number> | null = null
  #waiters: (() => void)[] = []
  readonly #underWay = new Set<(fault: Error) => void>()

  constructor(parts: PageParts) {
    this.targetId = parts.targetId
    this.#o = parts
    this.ready = this.#prepare().catch((error: unknown) => {
      this.fault ??= new PaddockError('BROWSER_GONE', `A tab could not be prepared: ${String(error)}`)
    })
  }

  get session(): string {
    return this.#o.session
  }

  get screen(): Screen {
    return this.#o.screen
  }

  /** True while a document or one of its resources is on its way, or input has not arrived. */
  get busy(): boolean {
    return this.#loading || this.#inFlight > 0 || this.#asked.size > 0
  }

  /** A target waits for its debugger: it runs once everything is watched. */
  async #prepare(): Promise<void> {
    const { screen, userAgent } = this.#o
    const { width, height } = screen
    await Promise.all([
      ...(userAgent === null ? [] : [this.send('Emulation.setUserAgentOverride', told(userAgent), nothing)]),
      this.send('Page.enable', {}, nothing),
      this.send('DOM.enable', {}, nothing),
      this.send('Inspector.enable', {}, nothing),
      this.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, nothing),
      // Told of requests alone: it is to keep no answer.
      this.send('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 }, nothing),
      ...(this.#o.inWindow
        ? []
        : [
            this.send(
              'Emulation.setDeviceMetricsOverride',
              { width, height, deviceScaleFactor: 1, mobile: false },
              nothing,
            ),
            this.send('Emulation.setFocusEmulationEnabled', { enabled: true }, nothing),
          ]),
      this.send('Runtime.runIfWaitingForDebugger', {}, nothing),
    ])
  }

  /** Sends a command about this tab. Throws `BROWSER_GONE` also when its renderer has crashed. */
  async send<T>(method: string, params: Readonly<Record<string, unknown>>, answer: z.ZodType<T>): Promise<T> {
    if (this.fault !== null) throw this.fault
    const crash = Promise.withResolvers<never>()
    this.#underWay.add(crash.reject)
    try {
      return await Promise.race([
        this.#o.pipe.send(method, params, { session: this.#o.session, answer }),
        crash.promise,
      ])
    } catch (error) {
      throw this.fault ?? error
    } finally {
      this.#underWay.delete(crash.reject)
    }
  }

  /**
   * Like {@link send} for what makes the page run its handlers: gives up waiting when a dialog opens, or when another tab
   * comes to the front.
   */
  async act(method: string, params: Readonly<Record<string, unknown>>): Promise<void> {
    const done = this.send(method, params, nothing)
    // The command stays under way behind the dialog; what becomes of it then is seen in the page.
    done.catch(() => undefined)
    const over = new AbortController()
    const elsewhere = this.when(() => this.dialog !== null || !this.#o.isFront(), over.signal)
    await Promise.race([done, elsewhere]).finally(() => over.abort())
  }

  /**
   * Sends input that the browser acknowledges only with its next frame, without waiting for it. The tab is {@link busy} until
   * then; a browser that does not answer is a {@link fault}.
   */
  hand(method: string, params: Readonly<Record<string, unknown>>): void {
    this.#inFlight += 1
    void this.act(method, params)
      .catch((error: unknown) => {
        if (isPaddockError(error)) this.fault ??= error
      })
      .finally(() => {
        this.#inFlight -= 1
        this.wake()
      })
  }

  /** Resolves as soon as `test` holds, which is looked at after every event of this tab. */
  async when(test: () => boolean, signal?: AbortSignal): Promise<void> {
    while (!test() && this.fault === null && this.#o.pipe.death === null && signal?.aborted !== true) {
      const next = Promise.withResolvers<void>()
      this.#waiters.push(next.resolve)
      signal?.addEventListener('abort', () => next.resolve(), { once: true })
      await next.promise
    }
  }

  /**
   * Calls a function of ours in the page's document, in a world of its own: it sees the DOM and nothing that the page has
   * put into its globals. `asUser`: with the rights of a gesture of the user's. Throws {@link CdpRefusal} when the document
   * goes away meanwhile.
   */
  async look(functionText: string, argument: unknown, awaited = false, asUser = false): Promise<unknown> {
    const contextId = await (this.#world ??= this.#openWorld())
    const { result, exceptionDetails } = await this.send(
      'Runtime.evaluate',
      {
        expression: `(${functionText})(${JSON.stringify(argument)})`,
        contextId,
        returnByValue: true,
        awaitPromise: awaited,
        userGesture: asUser,
      },
      evaluated,
    )
    if (exceptionDetails !== undefined) throw new CdpRefusal('Runtime.evaluate', exceptionDetails.text)
    return result.value
  }

  /** Answers the dialog that is open. */
  async answerDialog(accept: boolean, text: string | null): Promise<void> {
    await this.send('Page.handleJavaScriptDialog', { accept, ...(text === null ? {} : { promptText: text }) }, nothing)
  }

  /** Takes an event of this tab. */
  take({ method, params }: CdpEvent): void {
    this.#note(method, params)
    this.wake()
  }

  /** Lets everything that waits look again. */
  wake(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const wake of waiters) wake()
  }

  #note(method: string, params: unknown): void {
    switch (method) {
      case 'Fetch.requestPaused':
        this.#inFlight += 1
        void this.#serve(params).finally(() => {
          this.#inFlight -= 1
          this.wake()
        })
        return
      case 'Page.javascriptDialogOpening':
        this.dialog = dialogOpening.parse(params)
        this.dialogs += 1
        return
      case 'Page.javascriptDialogClosed':
        this.dialog = null
        return
      case 'Page.frameStartedLoading':
        if (frameEvent.parse(params).frameId === this.targetId) this.#loading = true
        return
      case 'Page.frameStoppedLoading':
        if (frameEvent.parse(params).frameId === this.targetId) this.#loading = false
        return
      case 'Page.frameNavigated': {
        const { frame } = frameNavigated.parse(params)
        if (frame.parentId !== undefined) return
        this.url = frame.url
        this.#world = null
        this.#asked.clear()
        return
      }
      case 'Network.requestWillBeSent': {
        const { requestId, type } = requestSent.parse(params)
        if (type === 'Fetch' || type === 'XHR') this.#asked.add(requestId)
        return
      }
      case 'Network.responseReceived':
      case 'Network.loadingFailed':
        this.#asked.delete(requestSent.parse(params).requestId)
        return
      case 'Page.navigatedWithinDocument': {
        const { frameId, url } = navigatedWithin.parse(params)
        if (frameId === this.targetId) this.url = url
        return
      }
      case 'Inspector.targetCrashed':
        this.fault = new PaddockError('BROWSER_GONE', 'The renderer of the page crashed')
        // What was asked of it is never answered.
        for (const reject of this.#underWay) reject(this.fault)
    }
  }

  async #serve(params: unknown): Promise<void> {
    const { requestId, request } = requestPaused.parse(params)
    let response: SiteResponse
    try {
      response = await this.#answer(request)
    } catch (cause) {
      this.fault ??= new PaddockError('ENVIRONMENT_TOOL_FAILED', `The task's site failed: ${String(cause)}`, { cause })
      response = { status: 500 }
    }
    const { status, headers = {}, cookies = [], body = '' } = response
    const responseHeaders = [
      ...Object.entries(headers).map(([name, value]) => ({ name, value })),
      ...cookies.map((value) => ({ name: 'set-cookie', value })),
    ]
    const fulfil = {
      requestId,
      responseCode: status,
      responseHeaders,
      body: Buffer.from(body).toString('base64'),
    }
    // A request that its page has given up meanwhile needs no answer.
    await this.#o.pipe
      .send('Fetch.fulfillRequest', fulfil, { session: this.#o.session, answer: nothing })
      .catch(() => undefined)
  }

  async #answer(request: z.infer<typeof requestPaused>['request']): Promise<SiteResponse> {
    const url = new URL(request.url)
    const { site } = this.#o
    const entries = request.postDataEntries ?? []
    const body =
      entries.length > 0
        ? Buffer.concat(entries.map(({ bytes }) => Buffer.from(bytes ?? '', 'base64')))
        : Buffer.from(request.postData ?? '', 'utf8')
    const found = await site.serve({ method: request.method, url, headers: request.headers, body })
    return found ?? unreachable(url)
  }

  async #openWorld(): Promise<number> {
    const made = await this.send('Page.createIsolatedWorld', { frameId: this.targetId, worldName }, isolatedWorld)
    return made.executionContextId
  }
}
