import type { ToolPicture } from '../../contract.ts'
import { pngOfBgrx } from './png.ts'
import type { XDisplay } from './x-display.ts'

/** So long after the last repaint a screen is looked at already, in milliseconds; more than a frame, so not amid a movement. */
const earlyMs = 20

/** The picture of a screen, taken once and given again for as long as nothing is painted. */
export class Sight {
  readonly #display: XDisplay
  /** The picture taken last, and the count of repaints before it began: with another count it is out of date. */
  #kept: { readonly paints: number; readonly picture: Promise<ToolPicture> } | null = null

  constructor(display: XDisplay) {
    this.#display = display
  }

  /** The whole screen, with all that was painted before the call. Throws `BROWSER_GONE`. */
  async picture(): Promise<ToolPicture> {
    // What the server painted before it answers this, it has told us of.
    await this.#display.sync()
    return this.#current()
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
    return pictureAs(await this.#display.pixels(), width, height)
  }
}

/** Pixels as an X server gives them, as a picture. */
export async function pictureAs(pixels: Buffer, width: number, height: number): Promise<ToolPicture> {
  return { mediaType: 'image/png', data: await pngOfBgrx(pixels, width, height), width, height }
}
