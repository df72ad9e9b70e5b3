import { Turns } from '../../../core/index.ts'
import type { Rows, XDisplay } from './x-display.ts'

/** Gives the pixels of so many rows of the screen, from the first on. */
export type ReadRows = (first: number, count: number) => Promise<Buffer>

/** The pixels of a screen, kept here: only rows that were painted since are fetched. */
export class ScreenPixels {
  readonly #display: XDisplay
  readonly #read: ReadRows
  readonly #frame: Buffer
  /** What has been painted since it was fetched; null for nothing. */
  #stale: Rows | null
  /** Fetches wait for each other, since they write the same frame. */
  readonly #turns = new Turns()

  constructor(display: XDisplay, read: ReadRows) {
    const { width, height } = display.screen
    this.#display = display
    this.#read = read
    this.#frame = Buffer.alloc(width * height * 4)
    this.#stale = { first: 0, end: height }
    display.onPaint((rows) => (this.#stale = united(this.#stale, rows)))
  }

  /**
   * Four bytes a pixel: blue, green, red, nothing, with every repaint that the server has told of. The buffer is ours and
   * changes with the next call. Throws `BROWSER_GONE`.
   */
  current(): Promise<Buffer> {
    return this.#turns.take(() => this.#fetch())
  }

  async #fetch(): Promise<Buffer> {
    const stale = this.#stale
    if (stale === null) return this.#frame
    this.#stale = null
    try {
      // The server tells of a repaint while it is at it; when it answers this, all that it has told of is painted.
      await this.#display.sync()
      const pixels = await this.#read(stale.first, stale.end - stale.first)
      pixels.copy(this.#frame, stale.first * this.#display.screen.width * 4)
    } catch (error) {
      this.#stale = united(this.#stale, stale)
      throw error
    }
    return this.#frame
  }
}

/** The rows that hold both. */
function united(a: Rows | null, b: Rows): Rows {
  return a === null ? b : { first: Math.min(a.first, b.first), end: Math.max(a.end, b.end) }
}
