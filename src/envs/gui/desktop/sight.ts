import type { ToolPicture } from '../../contract.ts'
import type { Region } from '../browser/index.ts'
import { enlarged, roundedIn } from './enlarge.ts'
import { PngScreen } from './png.ts'
import { type ReadRows, ScreenPixels } from './screen-pixels.ts'
import type { XDisplay } from './x-display.ts'

/** So long after the last repaint a screen is looked at already, in milliseconds; more than a frame, so not amid a movement. */
const earlyMs = 20

/** The picture of a screen, taken once and given again for as long as nothing is painted. */
export class Sight {
  readonly #display: XDisplay
  readonly #pixels: ScreenPixels
  readonly #png: PngScreen
  /** The picture taken last, and the count of repaints before it began: with another count it is out of date. */
  #kept: { readonly paints: number; readonly picture: Promise<ToolPicture> } | null = null

  constructor(display: XDisplay, read: ReadRows) {
    const { width, height } = display.screen
    this.#display = display
    this.#pixels = new ScreenPixels(display, read)
    this.#png = new PngScreen(width, height)
  }

  /** The whole screen, with all that was painted before the call. Throws `BROWSER_GONE`. */
  async picture(): Promise<ToolPicture> {
    // What the server painted before it answers this, it has told us of.
    await this.#display.sync()
    return this.#current()
  }

  /** A part of the screen as large as fits on it, with all that was painted before the call. Throws `BROWSER_GONE`. */
  async part(region: Region): Promise<ToolPicture> {
    await this.#display.sync()
    const { screen } = this.#display
    const part = roundedIn(region, screen)
    const times = Math.max(1, Math.floor(Math.min(screen.width / part.width, screen.height / part.height)))
    const [width, height] = [part.width * times, part.height * times]
    const pixels = enlarged(await this.#pixels.current(), screen.width, part, times)
    return { mediaType: 'image/png', data: await new PngScreen(width, height).of(pixels), width, height }
  }

  /** Until the function given back is called, takes a picture each time that the screen is about to be at rest. */
  foresee(): () => void {
    const timer = setTimeout(() => {
      this.#current().catch(() => undefined)
    }, earlyMs)
    const stop = this.#display.onPaint(() => timer.refresh())
    return () => {
      stop()
      clearTimeout(timer)
    }
  }

  #current(): Promise<ToolPicture> {
    const { paints } = this.#display
    if (this.#kept?.paints === paints) return this.#kept.picture
    const kept = { paints, picture: this.#take() }
    this.#kept = kept
    kept.picture.catch(() => {
      if (this.#kept === kept) this.#kept = null
    })
    return kept.picture
  }

  async #take(): Promise<ToolPicture> {
    const { width, height } = this.#display.screen
    const data = await this.#png.of(await this.#pixels.current())
    return { mediaType: 'image/png', data, width, height }
  }
}
