import { PaddockError, Turns } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { ToolOutcome, ToolPicture } from '../contract.ts'
import { type Action, type Screen, type SingleAction } from './actions/index.ts'
import {
  CdpRefusal,
  findTarget,
  type GuiBrowser,
  type InputAction,
  type GuiPage,
  type ImageOptions,
  isInput,
  lineOf,
  placeOf,
  PageTooLarge,
  readTree,
  RefBook,
  type ReferredNode,
  type Settled,
} from './browser/index.ts'
import type { GuiRecord } from './record.ts'
import type { TaskSite } from './site.ts'
import type { Surface } from './surface.ts'

/** Characters of a snapshot that are shown at once. */
const pageChars = 12_000

export interface GuiSessionParts {
  readonly surface: Surface
  readonly site: TaskSite
  readonly image: ImageOptions
  readonly maxActions: number | null
}

const answerIt = 'Answer it with browser_dialog, or with the keys Enter or Escape.'
/** What keys do to a dialog that cannot be seen: true accepts it. */
const dialogKeys: ReadonlyMap<string, boolean> = new Map([
  ['enter', true],
  ['return', true],
  ['escape', false],
  ['esc', false],
])

/** What a tool shows of the screen after it has worked. */
export type Shown = 'picture' | 'tree' | 'line'

/**
 * One attempt at a gui task: its browser, its app, and what the agent has said. Tools work one after the other, in the
 * order in which they were called.
 */
export class GuiSession {
  readonly #o: GuiSessionParts
  readonly #refs = new RefBook()
  #pointer: { readonly x: number; readonly y: number } | null = null
  readonly #turns = new Turns()
  #record: Pick<GuiRecord, 'ended' | 'answer' | 'actions'> = { ended: null, answer: null, actions: 0 }
  /** What the app held when the agent ended its attempt: what comes later does not count. */
  #final: { readonly state: unknown } | null = null

  constructor(parts: GuiSessionParts) {
    this.#o = parts
  }

  /** Where the last action left the mouse; null before the first. */
  get pointer(): { readonly x: number; readonly y: number } | null {
    return this.#pointer
  }

  /** What the agent sees and acts on; for those who set a task up and score it. */
  get surface(): Surface {
    return this.#o.surface
  }

  get screen(): Screen {
    return this.#o.surface.screen
  }

  get browser(): GuiBrowser {
    return this.#o.surface.browser
  }

  /** True while a dialog that cannot be seen keeps the page from taking input. */
  get busy(): boolean {
    return this.#o.surface.hidesDialogs && this.page.dialog !== null
  }

  /** Ends browser or desktop. */
  async close(): Promise<void> {
    await this.#o.surface[Symbol.asyncDispose]()
  }

  focus(backendNodeId: number, at: { readonly x: number; readonly y: number }): Promise<void> {
    return this.#o.surface.focus(backendNodeId, at)
  }

  /** What is done next is meant for the page. */
  front(): Promise<void> {
    return this.#o.surface.front()
  }

  input(action: InputAction): Promise<void> {
    return this.#o.surface.input(action)
  }

  get clipboard(): Surface['clipboard'] {
    return this.#o.surface.clipboard
  }

  get page(): GuiPage {
    return this.browser.page
  }

  /** What the verdict is made of. Throws `BROWSER_GONE` when the browser ended by itself before the agent had ended. */
  record(): GuiRecord {
    const { site } = this.#o
    const { browser } = this
    const fault = browser.tabs.find((tab) => tab.fault !== null)?.fault ?? null
    if (this.#record.ended === null && browser.death !== null) {
      throw new PaddockError('BROWSER_GONE', `The browser ended under the agent: ${browser.death}`)
    }
    if (fault !== null) throw fault
    return { ...this.#record, forged: site.forged, state: this.#final === null ? site.state() : this.#final.state }
  }

  /**
   * Runs one tool's work when those before it are through, unless the attempt is over. What it did is followed by what can
   * be seen then.
   */
  async work(shown: Shown, run: () => Promise<string | ToolOutcome>): Promise<ToolOutcome> {
    return this.#turns.take(() => this.#guarded(shown, run))
  }

  /** Does a canonical action; the batch stops at the first that fails or that ends the attempt. */
  async act(action: Action): Promise<ToolOutcome | string> {
    if (action.action !== 'batch') return this.#single(action)
    const said: string[] = []
    for (const [at, inner] of action.actions.entries()) {
      const outcome = await this.#single(inner)
      if (typeof outcome !== 'string') {
        return { ...outcome, text: `${[...said, `${at + 1}. ${outcome.text}`].join('\n')}` }
      }
      said.push(`${at + 1}. ${outcome}`)
      if (this.#record.ended !== null) break
      if (this.busy && at + 1 < action.actions.length) {
        return { status: 'error', text: `${said.join('\n')}\nA dialog opened; the rest of the batch was not done.` }
      }
      if (isInput(inner)) await this.#o.surface.settle({ quietMs: 30, capMs: 1000 })
    }
    return said.join('\n')
  }

  /** Points at what a target means: its place, scrolled into view, or what to tell the model. */
  async aim(
    target: string,
  ): Promise<
    | { readonly ok: true; readonly node: ReferredNode; readonly x: number; readonly y: number }
    | { readonly ok: false; readonly error: string }
  > {
    const found = findTarget(target, await this.nodes())
    if (!found.ok) return found
    const { node } = found
    await this.front()
    const place = node.backendNodeId === null ? null : await placeOf(this.page, node.backendNodeId)
    if (place === null) {
      return {
        ok: false,
        error: `${lineOf({ ...node, depth: 0 }).slice(2)} has no place on the screen: it is hidden or gone.`,
      }
    }
    return { ok: true, node, ...(await this.#o.surface.onScreen(place)) }
  }

  /** All nodes of the page in front, each with its ref. */
  async nodes(): Promise<readonly ReferredNode[]> {
    return this.#refs.name(await readTree(this.page))
  }

  /** The page's tree as text, in pages of bounded length, counted from 1. */
  async snapshot(page: number): Promise<string> {
    const lines = (await this.nodes()).map(lineOf)
    const pages: string[] = []
    let current = ''
    for (const line of lines) {
      if (current.length + line.length + 1 > pageChars && current !== '') {
        pages.push(current)
        current = ''
      }
      current += `${line.slice(0, 1000)}\n`
    }
    pages.push(current)
    const shown = pages[page - 1]
    if (shown === undefined) return `The snapshot has ${pages.length} pages only.`
    return pages.length === 1 ? shown : `${shown}[page ${page} of ${pages.length}; ask for the others by number]\n`
  }

  async #guarded(shown: Shown, run: () => Promise<string | ToolOutcome>): Promise<ToolOutcome> {
    if (this.#record.ended !== null) {
      const facts = { ended: this.#record.ended }
      return { status: 'error', text: 'The attempt is over: it was ended before. Nothing more can be done.', facts }
    }
    const { maxActions } = this.#o
    if (maxActions !== null && this.#record.actions >= maxActions) {
      return { status: 'error', text: `All ${maxActions} actions of this task are used up.`, facts: { ended: 'limit' } }
    }
    this.#record.actions += 1
    const outcome = await run().catch(pageMoved)
    if (this.#record.ended !== null) {
      const last: ToolOutcome = typeof outcome === 'string' ? { status: 'ok', text: outcome } : outcome
      return { ...last, facts: { ...last.facts, ended: this.#record.ended } }
    }
    const { surface, image } = this.#o
    const wanted = shown === 'picture' && (typeof outcome === 'string' || outcome.pictures === undefined)
    const settled = await surface.settle(wanted ? { see: image } : {})
    return this.#observed(shown, typeof outcome === 'string' ? { status: 'ok', text: outcome } : outcome, settled)
  }

  async #observed(shown: Shown, outcome: ToolOutcome, settled: Settled): Promise<ToolOutcome> {
    const facts = { settledBy: settled.by, settleMs: Math.round(settled.ms) }
    const { dialog, url } = this.page
    const lines = [outcome.text, `Page: ${url}`]
    if (this.browser.tabs.length > 1) lines.push(`${this.browser.tabs.length} tabs are open.`)
    if (settled.by === 'cap') lines.push('The page is still changing.')
    if (dialog !== null) {
      lines.push(`A dialog is open (${dialog.type}): ${JSON.stringify(dialog.message.slice(0, 500))}. ${answerIt}`)
      return { ...outcome, text: lines.join('\n'), facts }
    }
    const downloads = this.browser.downloads.map(({ name, state }) => `${name.slice(0, 100)} (${state})`)
    if (downloads.length > 0) lines.push(`Downloads: ${downloads.slice(-5).join(', ')}`)
    if (shown === 'tree') lines.push(await this.snapshot(1).catch((error: unknown) => pageMoved(error).text))
    const pictures = outcome.pictures ?? (shown === 'picture' ? [await this.#picture(settled)] : [])
    return { ...outcome, text: lines.join('\n'), facts, ...(pictures.length === 0 ? {} : { pictures }) }
  }

  async #picture({ seen }: Settled): Promise<ToolPicture> {
    return seen ?? this.#o.surface.picture(this.#o.image)
  }

  /** The attempt ends when what the last action began has come to rest. */
  async #end(how: Partial<Pick<GuiRecord, 'ended' | 'answer'>>): Promise<void> {
    await this.#o.surface.settle()
    this.#record = { ...this.#record, ...how }
    this.#final = { state: this.#o.site.state() }
  }

  async #single(action: SingleAction): Promise<ToolOutcome | string> {
    if (isInput(action)) {
      const accepts = action.action === 'key' ? dialogKeys.get(action.keys.toLowerCase()) : undefined
      if (this.busy && accepts !== undefined) {
        await this.page.answerDialog(accepts, null)
        return accepts ? 'Accepted the dialog.' : 'Dismissed the dialog.'
      }
      if (this.busy) return { status: 'error', text: `A dialog is open, so the page takes no input. ${answerIt}` }
      await this.#o.surface.input(action)
      this.#pointer = pointerAfter(action) ?? this.#pointer
      return `Did ${action.action}.`
    }
    switch (action.action) {
      case 'wait':
        await this.page.when(() => false, AbortSignal.timeout(action.seconds * 1000))
        return `Waited ${action.seconds} s.`
      case 'screenshot':
        return 'This is the screen.'
      case 'zoom': {
        const { x, y, width, height } = action
        const picture = await this.#o.surface.picture(this.#o.image, { x, y, width, height })
        return { status: 'ok', text: `This is the region ${width}x${height} at (${x}, ${y}).`, pictures: [picture] }
      }
      case 'answer':
        await this.#end({ ended: 'answered', answer: action.text })
        return 'The answer was taken. The attempt is over.'
      case 'done':
        await this.#end({ ended: 'done' })
        return 'The attempt is over.'
      case 'fail':
        await this.#end({ ended: 'failed' })
        return 'The attempt is over, without success.'
    }
  }
}

function pointerAfter(action: InputAction): { readonly x: number; readonly y: number } | null {
  if ('x' in action) return { x: action.x, y: action.y }
  return 'path' in action ? (action.path.at(-1) ?? null) : null
}

/** The browser refuses what is about a page or an element that has gone away meanwhile: the agent looks again. */
function pageMoved(error: unknown): ToolOutcome {
  if (error instanceof PageTooLarge) return { status: 'error', text: error.message }
  if (!(error instanceof CdpRefusal)) throw error
  return { status: 'error', text: 'The page changed meanwhile. Take a new snapshot and try again.' }
}

const sessions = new WeakMap<Box, Promise<GuiSession>>()

/** The attempt in this box, opened at first use. */
export function sessionOf(box: Box, open: () => Promise<GuiSession>): Promise<GuiSession> {
  const found = sessions.get(box)
  if (found !== undefined) return found
  const opening = open()
  sessions.set(box, opening)
  opening.catch(() => sessions.delete(box))
  return opening
}
