import { z } from 'zod'
import { fitting } from './read.ts'
import { adapterFrom, type Vocabulary } from './vocabulary.ts'

const call = z.strictObject({
  id: z.string().optional(),
  name: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
})
const one = z.union([call.transform((single) => [single]), z.array(call).min(1)])

const words: Vocabulary['words'] = {
  click_at: { does: 'click', takes: { x: 'x', y: 'y' } },
  hover_at: { does: 'move', takes: { x: 'x', y: 'y' } },
  type_text_at: {
    does: 'fill',
    takes: { x: 'x', y: 'y', text: 'text', press_enter: 'enter', clear_before_typing: 'clear' },
    optional: ['press_enter', 'clear_before_typing'],
    means: { enter: true, clear: true },
  },
  key_combination: { does: 'key', takes: { keys: 'keys' } },
  scroll_at: {
    does: 'scroll',
    takes: { x: 'x', y: 'y', direction: 'direction', magnitude: 'amount' },
    optional: ['magnitude'],
    means: { amount: 800 },
  },
  // No amount is published; the reference implementation presses Page Down.
  scroll_document: { does: 'scroll', takes: { direction: 'direction' }, means: { at: [500, 500], amount: 900 } },
  drag_and_drop: { does: 'drag', takes: { x: 'x', y: 'y', destination_x: 'x2', destination_y: 'y2' } },
  wait_5_seconds: { does: 'wait', means: { seconds: 5 } },
  go_back: { does: 'key', means: { keys: 'alt+Left' } },
  go_forward: { does: 'key', means: { keys: 'alt+Right' } },
}

/**
 * Computer use of Gemini 2.5 and 3 in a browser: function calls `{name, args}` of "Supported actions" on the pages of the Gemini API, one
 * or several. Coordinates and magnitudes are thousandths. `open_web_browser`, `search` and `navigate` are refused: a task has its pages.
 */
export const geminiAdapter = adapterFrom({
  name: 'gemini',
  coordinates: 'relative1000',
  words,
  // The safety system's word to a person.
  asides: ['safety_decision'],
  unit: (side) => side / 1000,
  calls: (said) => {
    const parsed = fitting(one, said)
    return parsed.ok
      ? parsed.value
      : `A function call has a name and args, such as {"name": "click_at", "args": {"x": 500, "y": 300}}.`
  },
  write: (written) => written,
})
