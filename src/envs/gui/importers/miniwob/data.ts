import { z } from 'zod'
import { gui } from '../../../../kits/environment.ts'

/** How a raw reward becomes ours, which is never below 0 (miniwob/reward.py at 3f461ff, without its negative half). */
const score = z.enum(['binary', 'raw', 'scaled', 'thresholded'])

/** `Task.data` of a page of MiniWoB++. Its files lie below `Task.source`. */
export const miniwobDataSchema = gui.shownShape.extend({
  format: z.literal('miniwob'),
  /** Below the folder `html`: `miniwob/click-test.html`. */
  page: z.string(),
  seed: z.int().min(0),
  /** Longest episode, in seconds; null: as long as the page itself gives, which is meant for scripts (10 s). */
  seconds: z.number().positive().max(100_000).nullable(),
  score,
  /** With `thresholded`: the least raw reward that counts as 1. */
  threshold: z.number().gt(0).max(1),
  /** Of page and `core.js`. */
  sha256: z.string(),
})

/** Parsed {@link miniwobDataSchema}. */
export type MiniwobData = z.infer<typeof miniwobDataSchema>

/** A set: which pages of a checkout, on which seeds. */
export const miniwobSetSchema = gui.setShape.extend({
  format: z.literal('miniwob'),
  /** A checkout of miniwob-plusplus, or its folder `html`; relative to the file of the set. */
  directory: z.string().min(1),
  /** Names such as `click-test` or `flight/AA`; left out: all. */
  pages: z.array(z.string()).min(1).optional(),
  seeds: z.array(z.int().min(0)).min(1).default([1, 2, 3, 4, 5]),
  screen: gui.screenShape,
  seconds: z.number().positive().max(100_000).nullable().default(1000),
  score: score.default('binary'),
  threshold: z.number().gt(0).max(1).default(1),
})
