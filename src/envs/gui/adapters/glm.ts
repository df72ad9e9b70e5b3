import { parseCalls, quoted } from './python-calls.ts'
import { spokenPart } from './read.ts'
import { adapterFrom, type Vocabulary } from './vocabulary.ts'

const pointed = { takes: { start_box: 'at', element_info: 'aside' }, optional: ['element_info'] } as const

const words: Vocabulary['words'] = {
  left_click: { does: 'click', ...pointed },
  right_click: { does: 'right_click', ...pointed },
  middle_click: { does: 'middle_click', ...pointed },
  hover: { does: 'move', ...pointed },
  left_double_click: { does: 'double_click', ...pointed },
  left_drag: {
    does: 'drag',
    takes: { start_box: 'at', end_box: 'to', element_info: 'aside' },
    optional: ['element_info'],
  },
  key: { does: 'key', takes: { keys: 'keys' } },
  type: { does: 'type', takes: { content: 'text' } },
  scroll: {
    does: 'scroll',
    takes: { start_box: 'at', direction: 'direction', step: 'amount', element_info: 'aside' },
    optional: ['step', 'element_info'],
    means: { amount: 5 },
  },
  WAIT: { does: 'wait', means: { seconds: 5 } },
  DONE: { does: 'done' },
  FAIL: { does: 'fail' },
}
const call = new RegExp(String.raw`^[ \t]*(?:${Object.keys(words).join('|')})\(`, 'gm')

/**
 * GLM-4.1V, 4.5V and 4.6V on a computer: one call on a line, `left_click(start_box='[500,300]', element_info='…')`, between
 * an explanation and `Memory:` (zai-org/GLM-V `examples/gui-agent`, "PC"). Coordinates are thousandths.
 */
export const glmAdapter = adapterFrom({
  name: 'glm',
  coordinates: 'relative1000',
  words,
  calls: callsIn,
  write: ({ name, args }) => {
    const given = Object.entries(args).map(
      ([key, value]) => `${key}=${typeof value === 'number' ? value : quoted(String(value))}`,
    )
    return `${name}(${given.join(', ')})`
  },
  place: {
    pattern: /^\s*\[\s*(\d+(?:\.\d+)?)\s*,\s*(\d+(?:\.\d+)?)\s*\]\s*$/,
    write: ({ x, y }) => `[${x},${y}]`,
  },
  form: "Write the action alone on a line: left_click(start_box='[x,y]', element_info='what it is'), scroll(start_box='[x,y]', direction='down', step=5). `keys` of a combination are joined by a plus sign. WAIT() sleeps 5 s, FAIL() says that it cannot be done. Then write Memory: and a JSON list of what you must remember.",
})

function callsIn(said: unknown) {
  if (typeof said !== 'string') return "GLM speaks in text: left_click(start_box='[x,y]')."
  const [action = ''] = spokenPart(said)
    .replaceAll(/<\|(?:begin|end)_of_box\|>/g, '\n')
    .split(/^\s*Memory:/m)
  const found = [...action.matchAll(call)]
  const [{ index } = { index: 0 }] = found
  if (found.length !== 1)
    return `There are ${found.length} actions at the start of a line. Write one: ${Object.keys(words).join(', ')}.`
  const parsed = parseCalls(action.slice(index))
  if (!parsed.ok) return `The action cannot be read: ${parsed.error}.`
  return parsed.calls.map(({ name, positional, keyword }) => ({
    name,
    // An argument without a name is refused by its place.
    args: { ...Object.fromEntries(positional.entries()), ...Object.fromEntries(keyword) },
  }))
}
