import { z } from 'zod'
import { gui } from '../../../../kits/environment.ts'

/** `Task.data` of a variant of a cua-bench task. Its module lies at `Task.source`. */
export const cuaBenchDataSchema = gui.shownShape.extend({
  format: z.literal('cua-bench'),
  /** Name of the task's folder. */
  module: z.string(),
  /** Which of its variants. */
  index: z.int().min(0),
  split: z.string(),
  /** Of `main.py`. */
  sha256: z.string(),
  /** Whether the module can solve it. */
  solves: z.boolean(),
  /** Folder with files of other hosts that its pages load, by host and path; null: they get none. Relative to the module. */
  assets: z.string().nullable(),
})
export type CuaBenchData = z.infer<typeof cuaBenchDataSchema>

/** A set: a task's folder, or a folder of such. */
export const cuaBenchSetSchema = gui.setShape.extend({
  format: z.literal('cua-bench'),
  directory: z.string().min(1),
  /** Names of task folders; left out: all. */
  tasks: z.array(z.string()).min(1).optional(),
  screen: gui.screenShape,
  assets: z.string().nullable().default(null),
  /** What becomes of modules that cannot be read or run here: the set is refused, or they are left out. */
  unsupported: z.enum(['refuse', 'leave-out']).default('refuse'),
})
