import { anthropicAdapter } from './anthropic/index.ts'
import { browsergymAdapter } from './browsergym/index.ts'
import { computer13Adapter } from './computer-13/index.ts'
import type { ActionAdapter } from './contract.ts'
import { miniwobAdapter } from './miniwob/index.ts'
import { openaiAdapter } from './openai/index.ts'
import { pyautoguiAdapter } from './pyautogui/index.ts'
import { qwenAdapter } from './qwen/index.ts'
import { uiTarsAdapter } from './ui-tars/index.ts'

export type { ActionAdapter, Scene } from './contract.ts'

const all = [
  openaiAdapter,
  anthropicAdapter('20250124'),
  anthropicAdapter('20251124'),
  qwenAdapter,
  uiTarsAdapter,
  computer13Adapter,
  pyautoguiAdapter,
  browsergymAdapter,
  miniwobAdapter,
]

/** The schemas that models are trained on, by name. */
export const actionAdapters: ReadonlyMap<string, ActionAdapter> = new Map(all.map((adapter) => [adapter.name, adapter]))
