import { z } from 'zod'
import { actionAdapters, coordinatesSchema, withCoordinates } from './adapters/index.ts'

/** How a task is shown and what it is about. */
const screen = z.strictObject({
  width: z.int().min(320).max(4096).default(1024),
  height: z.int().min(240).max(4096).default(768),
})

const image = z.strictObject({
  format: z.enum(['png', 'jpeg']).default('png'),
  /** Of the image against the screen; actions are in pixels of the screen whatever it is. */
  scale: z.number().min(0.1).max(2).default(1),
})

/** A schema by its name, or with what its model's coordinates are where they are not those that the schema has by itself. */
const schema = z.union(
  [
    z
      .string()
      .refine((name) => actionAdapters.has(name), `is no schema; use one of ${[...actionAdapters.keys()].join(', ')}`),
    z.strictObject({
      name: z
        .string()
        .refine(
          (name) => withCoordinates.includes(name),
          `has no coordinates to choose; ${withCoordinates.join(', ')} have`,
        ),
      coordinates: coordinatesSchema,
    }),
  ],
  'is the name of a schema, or {"name", "coordinates"} with "absolute", "relative1000", "fraction" or {"resized": 28}',
)

/** `Task.data` of a gui task: which goal of which app, on which seed. Instruction and expected state follow from these. */
export const guiDataSchema = z.strictObject({
  app: z.string(),
  goal: z.string(),
  seed: z.int().min(0),
  /** `browser`: the screen is one tab. `desktop`: an X server with a window manager and a browser in a window. */
  tier: z.enum(['browser', 'desktop']).default('browser'),
  screen: screen.prefault({}),
  image: image.prefault({}),
  /** Name of a schema that models are trained on, for the tool `computer`; null: the canonical actions. */
  schema: schema.nullable().default(null),
  /** Actions of one attempt; null: any number. */
  maxActions: z.int().min(1).nullable().default(null),
})

/** Parsed {@link guiDataSchema}. */
export type GuiData = z.infer<typeof guiDataSchema>
