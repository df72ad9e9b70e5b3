import { anthropicAdapter } from './anthropic/index.ts'
import { browsergymAdapter } from './browsergym/index.ts'
import { computer13Adapter } from './computer-13/index.ts'
import type { ActionAdapter } from './contract.ts'
import type { Coordinates } from './coordinates.ts'
import { geminiAdapter } from './gemini.ts'
import { glmAdapter } from './glm.ts'
import { holoAdapter } from './holo.ts'
import { miniwobAdapter } from './miniwob/index.ts'
import { openaiAdapter } from './openai/index.ts'
import { pyautoguiAdapter } from './pyautogui/index.ts'
import { qwenAdapter } from './qwen/index.ts'
import { seedAdapter } from './seed.ts'
import { uiTarsAdapter } from './ui-tars/index.ts'

export type { ActionAdapter, Scene } from './contract.ts'
export { type Coordinates, coordinatesSchema } from './coordinates.ts'

/** Schemas whose models count coordinates in more than one way. */
const byCoordinates: Readonly<Record<string, (coordinates?: Coordinates) => ActionAdapter>> = {
  qwen: qwenAdapter,
  'ui-tars': uiTarsAdapter,
  'osworld-computer-13': computer13Adapter,
  'osworld-pyautogui': pyautoguiAdapter,
  browsergym: browsergymAdapter,
  holo: holoAdapter,
}

const all = [
  openaiAdapter,
  anthropicAdapter('20250124'),
  anthropicAdapter('20251124'),
  ...Object.values(byCoordinates).map((make) => make()),
  miniwobAdapter,
  geminiAdapter,
  glmAdapter,
  seedAdapter,
]

/** Names of schemas that can be given the kind of their coordinates. */
export const withCoordinates: readonly string[] = Object.keys(byCoordinates)

/** A schema as a task names it: by its name, or with what its model's coordinates are. Null: there is none. */
export function adapterOf(
  schema: string | { readonly name: string; readonly coordinates: Coordinates } | null,
): ActionAdapter | null {
  if (schema === null) return null
  if (typeof schema === 'string') return actionAdapters.get(schema) ?? null
  return byCoordinates[schema.name]?.(schema.coordinates) ?? null
}

/** The schemas that models are trained on, by name. */
export const actionAdapters: ReadonlyMap<string, ActionAdapter> = new Map(all.map((adapter) => [adapter.name, adapter]))
