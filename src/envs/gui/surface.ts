import type { ToolPicture } from '../contract.ts'
import type { Screen } from './actions/index.ts'
import {
  doInput,
  type GuiBrowser,
  type ImageOptions,
  type InputAction,
  nothing,
  type Region,
  settle,
  type Settled,
  type SettleOptions,
  takePicture,
  writeClipboard,
} from './browser/index.ts'

/** What an agent sees and acts on: a tab by itself, or a whole desktop with a browser on it. */
export interface Surface extends AsyncDisposable {
  readonly screen: Screen
  readonly browser: GuiBrowser
  /** Brings the browser before the windows of other programs, so that what is meant for its page reaches it. */
  front(): Promise<void>
  /** Resolves when the action has been taken. Throws `BROWSER_GONE`. */
  input(action: InputAction): Promise<void>
  /** Gives the keyboard to an element of the page in front, which lies at this point of the screen. */
  focus(backendNodeId: number, at: { readonly x: number; readonly y: number }): Promise<void>
  picture(o: ImageOptions, region?: Region): Promise<ToolPicture>
  /** Waits until what the last action began has come to rest. */
  settle(o?: SurfaceRest): Promise<Settled>
  /** Where a point of the page in front lies on the screen. */
  onScreen(point: { readonly x: number; readonly y: number }): Promise<{ readonly x: number; readonly y: number }>
  /** The text that a user's copying and pasting goes through. */
  readonly clipboard: { read(): Promise<string>; write(text: string): Promise<void> }
  /** True where a dialog of the page is no part of what can be seen, so that it has to be answered by a tool. */
  readonly hidesDialogs: boolean
}

export interface SurfaceRest extends Pick<SettleOptions, 'quietMs' | 'capMs'> {
  /** How a picture is wanted that may be taken while all comes to rest; a desktop keeps it for {@link Surface.picture}. */
  readonly see?: ImageOptions
}

/** The browser tier: the screen is the tab in front, and nothing around it. */
export function tabSurface(browser: GuiBrowser, screen: Screen): Surface {
  return {
    screen,
    browser,
    front: async () => undefined,
    input: (action) => doInput(browser.page, action),
    focus: async (backendNodeId) => {
      await browser.page.send('DOM.focus', { backendNodeId }, nothing)
    },
    picture: (o, region) => takePicture(browser.page, o, region),
    settle: ({ see, ...o } = {}) =>
      settle(() => browser.page, { ...o, ...(see === undefined ? {} : { see: (page) => takePicture(page, see) }) }),
    onScreen: async (point) => point,
    clipboard: {
      read: () => browser.readClipboard(),
      write: (text) => writeClipboard(browser.page, text),
    },
    hidesDialogs: true,
    [Symbol.asyncDispose]: () => browser[Symbol.asyncDispose](),
  }
}
