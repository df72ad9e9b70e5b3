import { CdpRefusal } from './cdp-pipe.ts'
import type { GuiPage } from './page.ts'
import { nothing, quads } from './shapes.ts'

/** The middle of a node in pixels of the screen, after it was scrolled into view; null for what has no place. */
export async function placeOf(
  page: GuiPage,
  backendNodeId: number,
): Promise<{ readonly x: number; readonly y: number } | null> {
  try {
    await page.send('DOM.scrollIntoViewIfNeeded', { backendNodeId }, nothing)
    const found = await page.send('DOM.getContentQuads', { backendNodeId }, quads)
    for (const quad of found.quads) {
      const xs = quad.filter((_, at) => at % 2 === 0)
      const ys = quad.filter((_, at) => at % 2 === 1)
      const [left, right] = [Math.max(0, Math.min(...xs)), Math.min(page.screen.width, Math.max(...xs))]
      const [top, bottom] = [Math.max(0, Math.min(...ys)), Math.min(page.screen.height, Math.max(...ys))]
      if (right - left >= 1 && bottom - top >= 1) return { x: (left + right) / 2, y: (top + bottom) / 2 }
    }
    return null
  } catch (error) {
    if (error instanceof CdpRefusal) return null
    throw error
  }
}
