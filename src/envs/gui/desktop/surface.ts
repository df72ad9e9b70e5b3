import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import type { Screen } from '../actions/index.ts'
import { GuiBrowser, settle, type Site } from '../browser/index.ts'
import type { Surface } from '../surface.ts'
import { browserWidth, openBeside, type Program } from './beside.ts'
import { hasFocus } from './page-focus.ts'
import { Sight } from './sight.ts'
import { desktopEnv, startDesktop } from './start.ts'
import { xClipboard } from './x-clipboard.ts'
import type { XDisplay } from './x-display.ts'
import { doXInput } from './x-input.ts'

/** After the page has come to rest, so long for what is painted around it: menus, lists, windows. */
const paintQuietMs = 60
const paintCapMs = 500

/** The desktop tier: the screen is the X server's, with window manager and browser; input and pictures are X's own. */
export async function desktopSurface(
  box: Box,
  o: { readonly screen: Screen; readonly site: Site; readonly beside?: Program | null },
): Promise<Surface> {
  const { beside = null } = o
  const desktop = await browserOnDesktop(box, o, beside === null ? null : browserWidth)
  if (beside === null) return desktop.surface
  try {
    return await openBeside(box, desktop, beside)
  } catch (error) {
    await desktop.surface[Symbol.asyncDispose]()
    throw error
  }
}

async function browserOnDesktop(
  box: Box,
  o: { readonly screen: Screen; readonly site: Site },
  width: number | null,
): Promise<{ readonly surface: Surface; readonly display: XDisplay }> {
  const desktop = await startDesktop(box, o.screen, width)
  const { display, pipe } = desktop
  let browser: GuiBrowser
  try {
    const { width, height } = display.screen
    if (width !== o.screen.width || height !== o.screen.height) {
      const wanted = `${o.screen.width}x${o.screen.height}`
      throw new PaddockError('BROWSER_GONE', `The X server has a screen of ${width}x${height} in place of ${wanted}`)
    }
    browser = await GuiBrowser.openInWindow(pipe, o)
  } catch (error) {
    await desktop[Symbol.asyncDispose]()
    throw error
  }
  const sight = new Sight(display, desktop.rows)
  const surface: Surface = {
    screen: display.screen,
    browser,
    front: async () => undefined,
    input: (action) => doXInput(display, action),
    // The keyboard may belong to the address bar: only a click brings it to the page.
    focus: async (node, { x, y }) => {
      await doXInput(display, { action: 'click', x, y })
      await hasFocus(browser.page, node)
    },
    picture: (_options, region) => (region === undefined ? sight.picture() : sight.part(region)),
    settle: async ({ see, ...options } = {}) => {
      const from = performance.now()
      const enough = see === undefined ? () => undefined : sight.foresee()
      try {
        const settled = await settle(() => browser.page, options)
        if (display.gone) throw new PaddockError('BROWSER_GONE', 'The X server has hung up')
        await display.quiet(paintQuietMs, paintCapMs)
        return { ...settled, ms: performance.now() - from }
      } finally {
        enough()
      }
    },
    onScreen: async ({ x, y }) => {
      const { left, top } = offset.parse(await browser.page.look(windowOffset, null))
      return { x: x + left, y: y + top }
    },
    clipboard: xClipboard(box, desktopEnv),
    hidesDialogs: false,
    [Symbol.asyncDispose]: () => desktop[Symbol.asyncDispose](),
  }
  return { surface, display }
}

const offset = z.object({ left: z.number(), top: z.number() })
/** Where the page begins on the screen: below what the window shows above it. */
const windowOffset = `() => ({
  left: window.screenX + Math.round((window.outerWidth - window.innerWidth) / 2),
  top: window.screenY + window.outerHeight - window.innerHeight,
})`
