import type { ToolPicture } from '../../contract.ts'
import type { GuiPage } from './page.ts'
import { shot } from './shapes.ts'

/** How screenshots are taken. */
export interface ImageOptions {
  readonly format: 'png' | 'jpeg'
  /** 1: a pixel of the image is one of the screen. */
  readonly scale: number
}

export interface Region {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** The screen of a tab, or a region of it enlarged to the size of the screen. */
export async function takePicture(page: GuiPage, o: ImageOptions, region?: Region): Promise<ToolPicture> {
  const { width, height } = page.screen
  const clip = region ?? { x: 0, y: 0, width, height }
  const scale = region === undefined ? o.scale : Math.min(width / region.width, height / region.height) * o.scale
  const { data } = await page.send(
    'Page.captureScreenshot',
    {
      format: o.format,
      ...(o.format === 'jpeg' ? { quality: 80 } : {}),
      optimizeForSpeed: true,
      ...(region === undefined && scale === 1 ? {} : { clip: { ...clip, scale } }),
    },
    shot,
  )
  return {
    mediaType: o.format === 'png' ? 'image/png' : 'image/jpeg',
    data: Buffer.from(data, 'base64'),
    width: Math.round(clip.width * scale),
    height: Math.round(clip.height * scale),
  }
}
