import { type GuiPage, CdpRefusal } from '../browser/index.ts'
import { quads } from '../browser/shapes.ts'

/** Where a node lies in its page without moving it; null for what is not shown. */
export async function placeOnPage(
  page: GuiPage,
  backendNodeId: number,
): Promise<{ readonly x: number; readonly y: number; readonly width: number; readonly height: number } | null> {
  try {
    const [quad] = (await page.send('DOM.getContentQuads', { backendNodeId }, quads)).quads
    if (quad === undefined) return null
    const xs = quad.filter((_, at) => at % 2 === 0)
    const ys = quad.filter((_, at) => at % 2 === 1)
    const [x, y] = [Math.round(Math.min(...xs)), Math.round(Math.min(...ys))]
    return { x, y, width: Math.round(Math.max(...xs)) - x, height: Math.round(Math.max(...ys)) - y }
  } catch (error) {
    if (error instanceof CdpRefusal) return null
    throw error
  }
}
