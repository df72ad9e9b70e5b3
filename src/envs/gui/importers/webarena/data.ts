import { z } from 'zod'
import { gui } from '../../../../kits/environment.ts'

const contents = z.union([
  z.looseObject({ exact_match: z.string() }),
  z.looseObject({ must_include: z.array(z.string()) }),
])
const target = z.looseObject({
  url: z.string(),
  locator: z.string().default(''),
  required_contents: contents,
  prep_actions: z.array(z.string()).default([]),
})
const answers = z.strictObject({
  exact_match: z.string().optional(),
  must_include: z.array(z.string()).optional(),
  fuzzy_match: z.union([z.literal('N/A'), z.array(z.string())]).optional(),
})

/** A cookie as Playwright's `storage_state` keeps it. */
const cookie = z.object({
  name: z.string(),
  value: z.string(),
  domain: z.string(),
  path: z.string().default('/'),
  expires: z.number().optional(),
  httpOnly: z.boolean().default(false),
  secure: z.boolean().default(false),
  sameSite: z.enum(['Strict', 'Lax', 'None']).optional(),
})
export const storageStateSchema = z.looseObject({ cookies: z.array(cookie) })

/**
 * A task of WebArena (`config_files/test.raw.json`, and single files; evaluation_harness/evaluators.py reads `eval`), in
 * web-arena-x/webarena at f62e0b9.
 */
export const webarenaFileSchema = z.looseObject({
  sites: z.array(z.string()).default([]),
  task_id: z.union([z.int(), z.string()]),
  storage_state: z.string().nullish(),
  start_url: z.string().min(1),
  intent: z.string().min(1),
  /** A picture, or several, that VisualWebArena shows beside the intent. */
  image: z.union([z.string(), z.array(z.string())]).nullish(),
  eval: z.looseObject({
    eval_types: z.array(z.enum(['string_match', 'url_match', 'program_html'])).min(1),
    reference_answers: z.unknown(),
    reference_url: z.string().nullish(),
    url_note: z.string().nullish(),
    string_note: z.string().nullish(),
    program_html: z.unknown(),
  }),
})

/** `Task.data` of a task of WebArena: its evaluation with only what is looked at. */
export const webarenaDataSchema = gui.shownShape.extend({
  format: z.literal('webarena'),
  id: z.string(),
  /** Pages that are open at the beginning, the first in front. */
  start: z.array(z.url()).min(1),
  /** Origins that the browser reaches, by the host. */
  origins: z.array(z.string()),
  cookies: z.array(cookie),
  /** What must be answered; null: nothing. */
  answers: answers.nullable(),
  /** Why a task cannot be done, where "N/A" is the answer. */
  note: z.string(),
  /** One of these must be where the attempt ends; null: anywhere. */
  urls: z.array(z.string()).nullable(),
  targets: z.array(target),
  judge: gui.sidecarSchema.nullable(),
})
export type WebarenaData = z.infer<typeof webarenaDataSchema>

/** Shapes that are looked at only where the evaluation says so: other files leave them in any form. */
export const answersSchema = answers
export const targetsSchema = z.array(target).min(1)

/** A set: which tasks, and where the user's sites are. */
export const webarenaSetSchema = gui.setShape.extend({
  format: z.literal('webarena'),
  /** A JSON file with one task or a list of them, or a folder of such files; relative to the file of the set. */
  tasks: z.string().min(1),
  /** Where the sites are, by the names of the placeholders: `SHOPPING` for `__SHOPPING__`. */
  sites: z.record(z.string().regex(/^[A-Z_]+$/, 'must be upper case, such as SHOPPING'), z.url()).default({}),
  /** Task ids; left out: all. */
  ids: z
    .array(z.union([z.int(), z.string()]))
    .min(1)
    .optional(),
  unsupported: z.enum(['refuse', 'leave-out']).default('refuse'),
  /** A folder with the files that `storage_state` names. */
  auth: z.string().nullable().default(null),
  /** What decides `fuzzy_match`: gets the answer as result, `{reference, intent}` as expected. */
  judge: gui.sidecarSchema.nullable().default(null),
  screen: gui.screenShape,
})
export type WebarenaSet = z.infer<typeof webarenaSetSchema>
