import { z } from 'zod'
import { isFraction, outsideOf, type Screen } from '../actions/index.ts'
import type { Point } from './contract.ts'
import { scaled } from './read.ts'

/**
 * What a model's coordinates are: pixels of the screen, thousandths of it, fractions of it, or pixels of the picture as the
 * model's image processor resizes it.
 */
export const coordinatesSchema = z.union([
  z.enum(['absolute', 'relative1000', 'fraction']),
  z.strictObject({
    /** Sides are multiples of this: 28 for Qwen2-VL and Qwen2.5-VL (14-pixel patches, merged two by two), 32 for Qwen3-VL. */
    resized: z.int().min(1).max(256),
    /** Fewest and most pixels of the picture. Default: 4 and 16,384 squares of a side of `resized`. */
    minPixels: z.int().min(1).optional(),
    maxPixels: z.int().min(1).optional(),
  }),
])
export type Coordinates = z.infer<typeof coordinatesSchema>

/** The coordinates of a model on a screen. */
export interface Grid {
  /** The size of the picture that they are on. */
  readonly picture: Screen
  /** In words, for the model. */
  readonly words: string
  /** The place on the screen that is meant, or what to tell the model: what does not fit is never guessed. */
  toScreen(point: Point): { readonly ok: true; readonly point: Point } | { readonly ok: false; readonly error: string }
  fromScreen(point: Point): Point
}

const thousand = 1000

/** The kind of most models: pixels of the picture that they see. */
export function pixelsOf({ width, height }: Screen): string {
  return `Coordinates are pixels of a picture of ${width}x${height}.`
}

export function gridOf(kind: Coordinates, screen: Screen): Grid {
  const { width, height } = screen
  if (kind === 'relative1000' || kind === 'fraction') {
    const span = kind === 'fraction' ? 1 : thousand
    const words =
      kind === 'fraction'
        ? 'Coordinates are fractions of the screen: x and y go from 0 to 1.'
        : `Coordinates are thousandths of the screen: x and y go from 0 to ${thousand}.`
    return {
      picture: screen,
      words,
      toScreen: ({ x, y }) => {
        if (x < 0 || y < 0 || x > span || y > span || (span > 1 && isFraction({ x, y }))) {
          return {
            ok: false,
            error: `The coordinate [${x}, ${y}] is outside of the screen or of another kind. ${words}`,
          }
        }
        return { ok: true, point: { x: scaled(x, span, width), y: scaled(y, span, height) } }
      },
      fromScreen: ({ x, y }) => {
        const part = (value: number, of: number) =>
          span === 1 ? Number((value / of).toFixed(4)) : Math.round((value * span) / of)
        return { x: part(x, width), y: part(y, height) }
      },
    }
  }
  const picture = kind === 'absolute' ? screen : resized(screen, kind)
  const words = pixelsOf(picture)
  return {
    picture,
    words,
    toScreen: (point) => {
      const beside = outsideOf({ action: 'move', ...point }, picture)
      if (beside !== null) return { ok: false, error: beside }
      if (kind === 'absolute') return { ok: true, point: { x: point.x, y: point.y } }
      return {
        ok: true,
        point: { x: scaled(point.x, picture.width, width), y: scaled(point.y, picture.height, height) },
      }
    },
    fromScreen: (point) =>
      kind === 'absolute'
        ? { x: point.x, y: point.y }
        : { x: scaled(point.x, width, picture.width), y: scaled(point.y, height, picture.height) },
  }
}

/** The size to which the image processor of Qwen2-VL and its successors brings a picture (`smart_resize` of qwen-vl-utils). */
function resized({ width, height }: Screen, kind: Exclude<Coordinates, string>): Screen {
  const { resized: factor, minPixels = 4 * factor ** 2, maxPixels = 16_384 * factor ** 2 } = kind
  const near = (value: number) => Math.max(factor, Math.round(value / factor) * factor)
  const [w, h] = [near(width), near(height)]
  const at = (side: number, round: (value: number) => number) => Math.max(factor, round(side / factor) * factor)
  if (w * h > maxPixels) {
    const by = Math.sqrt((width * height) / maxPixels)
    return { width: at(width / by, Math.floor), height: at(height / by, Math.floor) }
  }
  if (w * h < minPixels) {
    const by = Math.sqrt(minPixels / (width * height))
    return { width: at(width * by, Math.ceil), height: at(height * by, Math.ceil) }
  }
  return { width: w, height: h }
}
