import { z } from 'zod'
import { type Clock, systemClock } from '../../../core/index.ts'
import type { ToolPicture } from '../../contract.ts'
import { CdpRefusal } from './cdp-pipe.ts'
import type { GuiPage } from './page.ts'

/** How an action's consequences came to rest. */
export interface Settled {
  /** `quiet`: nothing is on its way and the page has stopped changing. `dialog`: it waits for an answer. `cap`: it never stopped. */
  readonly by: 'quiet' | 'dialog' | 'cap'
  /** Until it was at rest; a picture may have taken longer. */
  readonly ms: number
  /** What was seen of the page while it came to rest; null when it changed meanwhile, or nothing was to be seen. */
  readonly seen: ToolPicture | null
}

export interface SettleOptions {
  /** The page counts as quiet after this long without a change, in milliseconds. Default 60. */
  readonly quietMs?: number
  /** Longest wait, in milliseconds. Default 3000. */
  readonly capMs?: number
  /**
   * Takes a picture of the page. It is asked for while the page is about to be at rest, since a browser needs some frames
   * for it, and is kept if nothing has changed from then on.
   */
  readonly see?: (page: GuiPage) => Promise<ToolPicture>
  readonly clock?: Clock
}

/** So long after its last change a page is looked at already. */
const earlyMs = 12

/**
 * Waits until a page is at rest: no document or resource on its way, no input that it has not taken, and no change of the
 * DOM and no transition for `quietMs`. What changes all the time by itself (endless animations, elements of role timer,
 * marquee or progressbar, or marked `data-ticker`) does not count. It waits for events, never for a fixed time, and gives
 * up at `capMs`.
 */
export async function settle(pageOf: () => GuiPage, o: SettleOptions = {}): Promise<Settled> {
  const { quietMs = 60, capMs = 3000, see, clock = systemClock } = o
  const from = clock.monotonic()
  const passed = (): number => clock.monotonic() - from
  const cap = AbortSignal.timeout(capMs)
  while (!cap.aborted) {
    const page = pageOf()
    await page.when(() => !page.busy || page.dialog !== null || pageOf() !== page, cap)
    if (page.fault !== null) throw page.fault
    if (page.dialog !== null) return { by: 'dialog', ms: passed(), seen: null }
    if (cap.aborted) break
    const resting = rest(page, { quietMs, leftMs: () => Math.max(0, capMs - passed()), passed, see })
    resting.catch(() => undefined)
    const moved = new AbortController()
    const signal = AbortSignal.any([moved.signal, cap])
    const found = await Promise.race([
      resting,
      page.when(() => page.dialog !== null || pageOf() !== page, signal).then(() => null),
    ])
    moved.abort()
    if (found !== null && !page.busy && pageOf() === page) return { by: 'quiet', ...found }
  }
  return { by: 'cap', ms: passed(), seen: null }
}

interface RestOptions {
  readonly see: SettleOptions['see'] | undefined
  readonly quietMs: number
  readonly leftMs: () => number
  readonly passed: () => number
}

/** Resolves when the document is quiet; null when it goes away or the time is up. */
async function rest(page: GuiPage, o: RestOptions): Promise<Pick<Settled, 'ms' | 'seen'> | null> {
  const { quietMs, leftMs, passed, see } = o
  const quiet = async (afterMs: number, base: number | null) =>
    looked.parse(await page.look(untilQuiet, { quietMs: afterMs, capMs: leftMs(), base }, true))
  try {
    if (see === undefined) return (await quiet(quietMs, null)).quiet ? { ms: passed(), seen: null } : null
    const early = await quiet(Math.min(earlyMs, quietMs), null)
    if (!early.quiet) return null
    const seeing = see(page).catch(() => null)
    const late = await quiet(quietMs, early.base)
    if (!late.quiet) return null
    return { ms: passed(), seen: late.mark === early.mark ? await seeing : null }
  } catch (error) {
    // The document went away: look at the one that follows.
    if (error instanceof CdpRefusal) return null
    throw error
  }
}

const looked = z.object({ quiet: z.boolean(), base: z.number(), mark: z.string() })

/**
 * Runs in the page, in our own world: resolves when nothing that counts has changed for `quietMs`, counted from `base` (a
 * time of that world; null: now), or at the cap. Equal marks: the same document, unchanged.
 */
const untilQuiet = `({ quietMs, capMs, base }) => new Promise((resolve) => {
  const tickers = '[role=timer],[role=marquee],[role=progressbar],progress,[data-ticker]'
  const counts = (node) => {
    const element = node.nodeType === 1 ? node : node.parentElement
    return element === null || element.closest(tickers) === null
  }
  const stir = (rest) => { rest.changes += 1; rest.at = performance.now() }
  if (globalThis.rest === undefined) {
    const rest = { name: Math.random(), changes: 0, at: 0 }
    new MutationObserver((records) => { if (records.some(({ target }) => counts(target))) stir(rest) })
      .observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
    globalThis.rest = rest
  }
  const rest = globalThis.rest
  const from = base ?? performance.now()
  const until = performance.now() + capMs
  const end = (quiet) => resolve({ quiet, base: from, mark: rest.name + ' ' + rest.changes })
  const moving = () => document.getAnimations().filter((one) => one.playState === 'running' && one.effect?.target
    && Number.isFinite(one.effect.getComputedTiming().endTime) && counts(one.effect.target))
  // 'behind': as many changes as there were before the page's own timers that were overdue. On a busy machine this is run later than it was
  // to be, and before some of them; one without a delay would always go before them.
  const look = (behind) => {
    const now = performance.now()
    const left = Math.max(from, rest.at) + quietMs - now
    if (left <= 0) {
      const animations = moving()
      if (animations.length === 0) {
        const changes = rest.changes
        return behind === changes ? end(true) : void setTimeout(() => look(changes), 1)
      }
      const over = Promise.race(animations.map(({ finished }) => finished.catch(() => undefined)))
      over.then(() => { stir(rest); look() })
    }
    if (now >= until) return end(false)
    if (left > 0) setTimeout(() => look(), Math.ceil(Math.min(left, until - now)))
  }
  setTimeout(() => end(false), capMs)
  look()
})`
