import { z } from 'zod'
import type { ActionAdapter } from './contract.ts'
import type { Coordinates } from './coordinates.ts'
import { codeIn, fitting } from './read.ts'
import { adapterFrom, type Vocabulary, type WordCall } from './vocabulary.ts'

const pointed = { takes: { element: 'aside', x: 'x', y: 'y' }, optional: ['element'] } as const

const words: Vocabulary['words'] = {
  click: { does: 'click', ...pointed },
  write: { does: 'fill', takes: { content: 'text', press_enter: 'enter' }, optional: ['press_enter'] },
  answer: { does: 'answer', takes: { content: 'text' } },
  click_element: { does: 'click', ...pointed },
  click_absolute: { does: 'click', takes: { x: 'x', y: 'y' } },
  write_element_abs: {
    does: 'fill',
    takes: { content: 'text', ...pointed.takes },
    optional: ['element'],
    means: { enter: true },
  },
  // No amount is published: as far as UI-TARS scrolls.
  scroll: { does: 'scroll', takes: { direction: 'direction' }, means: { amount: 5 } },
  go_back: { does: 'key', means: { keys: 'alt+Left' } },
  refresh: { does: 'key', means: { keys: 'F5' } },
  wait: { does: 'wait', takes: { seconds: 'seconds' }, optional: ['seconds'], means: { seconds: 2 } },
}

const call = z.record(z.string(), z.unknown())
const about = { note: z.string().nullish(), notes: z.string().nullish(), thought: z.string().nullish() }
const step = z.union([z.strictObject({ ...about, tool_call: call }), z.strictObject({ ...about, action: call })])
const example =
  '{"note": null, "thought": "…", "tool_call": {"tool_name": "click", "element": "what it is", "x": 500, "y": 300}}'

/**
 * Holo's JSON of one step: the tools of Holo 3 that its pages publish (`tool_call` with `tool_name`, hub.hcompany.ai "Agent loop"), and the
 * actions of Holo 1 and 1.5 (`action` with `action`, "navigation step"). Coordinates are thousandths since Holo 2; before they are pixels of
 * the resized picture (`{"resized": 28}`). `goto` and `restart` are refused: a task has its pages.
 */
export const holoAdapter = (coordinates: Coordinates = 'relative1000'): ActionAdapter =>
  adapterFrom({
    name: 'holo',
    coordinates,
    words,
    calls: callsIn,
    write: ({ name, args }) => JSON.stringify({ note: null, thought: '', tool_call: { tool_name: name, ...args } }),
    form: `Answer with one JSON object: ${example}. "tool_name" is one of these, its arguments are further keys:`,
  })

function callsIn(said: unknown): readonly WordCall[] | string {
  const parsed = fitting(step, typeof said === 'string' ? jsonIn(said) : said)
  if (!parsed.ok) return `A step is one JSON object: ${example}.`
  const [key, { [key]: name, ...args }] =
    'tool_call' in parsed.value ? ['tool_name', parsed.value.tool_call] : ['action', parsed.value.action]
  return typeof name === 'string' ? [{ name, args }] : `A step is one JSON object: ${example}.`
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(codeIn(text))
  } catch {
    return null
  }
}
