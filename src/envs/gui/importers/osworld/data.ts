import { z } from 'zod'
import { gui } from '../../../../kits/environment.ts'

/** A step of `config` or `evaluator.postconfig`. */
export const stepSchema = z.object({ type: z.string(), parameters: z.record(z.string(), z.unknown()).default({}) })
export type Step = z.infer<typeof stepSchema>

/** What a getter is asked: its name, and members that only it knows. */
export const askSchema = z.looseObject({ type: z.string() })
export type Ask = z.infer<typeof askSchema>

const options = z.record(z.string(), z.unknown())
const several = <T extends z.ZodType>(one: T) => z.union([z.array(one), one])

/**
 * A task file of OSWorld (`evaluation_examples/examples/<domain>/<id>.json`; members and their meaning:
 * desktop_env/desktop_env.py, `_set_evaluator_info` and `evaluate`, in ljxpython/OSWorldUse at b5007a9).
 */
export const osworldFileSchema = z.looseObject({
  id: z.string().min(1),
  instruction: z.string().min(1),
  snapshot: z.string().optional(),
  source: z.unknown().optional(),
  related_apps: z.array(z.string()).default([]),
  config: z.array(stepSchema).default([]),
  evaluator: z.looseObject({
    func: several(z.string()),
    result: several(askSchema.or(z.object({}))).optional(),
    expected: several(askSchema.or(z.object({}))).optional(),
    conj: z.enum(['and', 'or']).default('and'),
    options: several(options).optional(),
    postconfig: z.array(stepSchema).default([]),
  }),
})
export type OsworldFile = z.infer<typeof osworldFileSchema>

/** One metric with what it compares. */
const measure = z.object({
  func: z.string(),
  result: askSchema.nullable(),
  expected: askSchema.nullable(),
  options,
})
export type Measure = z.infer<typeof measure>

/** A machine of the user's that OSWorld's server runs on, and where to ask for its snapshot to be taken back. */
const machine = z.strictObject({ url: z.url(), reset: z.url() })
export type MachineAddress = z.infer<typeof machine>

/** `Task.data` of a task of OSWorld. */
export const osworldDataSchema = gui.shownShape.extend({
  format: z.literal('osworld'),
  id: z.string(),
  apps: z.array(z.string()),
  config: z.array(stepSchema),
  postconfig: z.array(stepSchema),
  conj: z.enum(['and', 'or']),
  /** Empty: the task cannot be done, and saying so is right (`infeasible`). */
  measures: z.array(measure),
  sidecar: gui.sidecarSchema.nullable(),
  /** Null: a desktop box of ours. */
  machine: machine.nullable(),
  /** Image of the box by reference; null: the desktop tier's own. */
  boxImage: z.string().nullable(),
  /** Below the folder of the set: where files stand that the task would download. */
  assets: z.string().nullable(),
  /** Origins of web sites of the user's that the browser may reach, by the host. */
  sites: z.array(z.string()),
})
export type OsworldData = z.infer<typeof osworldDataSchema>

/** A set: which task files, and what they need beyond OSWorld's machine. */
export const osworldSetSchema = gui.setShape.extend({
  format: z.literal('osworld'),
  /** A task file, or a folder of them at any depth; relative to the file of the set. */
  directory: z.string().min(1),
  /** Ids, or the beginnings of ids; left out: all. */
  ids: z.array(z.string()).min(1).optional(),
  /** What becomes of tasks that cannot be run here: the set is refused, or they are left out. */
  unsupported: z.enum(['refuse', 'leave-out']).default('refuse'),
  screen: gui.screenShape,
  sidecar: gui.sidecarSchema.nullable().default(null),
  machine: machine.nullable().default(null),
  boxImage: z.string().nullable().default(null),
  assets: z.string().nullable().default(null),
  sites: z.array(z.url()).default([]),
})
export type OsworldSet = z.infer<typeof osworldSetSchema>
