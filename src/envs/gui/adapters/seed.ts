import { adapterFrom, type Vocabulary, type WordCall } from './vocabulary.ts'
import { spokenPart } from './read.ts'
import { xmlCall } from './xml-calls.ts'

const words: Vocabulary['words'] = {
  click: { does: 'click', takes: { point: 'at' } },
  left_double: { does: 'double_click', takes: { point: 'at' } },
  right_single: { does: 'right_click', takes: { point: 'at' } },
  drag: { does: 'drag', takes: { start_point: 'at', end_point: 'to' } },
  // One scroll turns the wheel by five notches, as UI-TARS' `action_parser.py` does.
  scroll: {
    does: 'scroll',
    takes: { point: 'at', direction: 'direction' },
    optional: ['point'],
    means: { amount: 5 },
  },
  move_to: { does: 'move', takes: { point: 'at' } },
  type: { does: 'type', takes: { content: 'text' } },
  hotkey: { does: 'key', takes: { key: 'keys' } },
  wait: { does: 'wait', takes: { time: 'seconds' }, optional: ['time'], means: { seconds: 5 } },
  finished: { does: 'answer', takes: { content: 'text' }, optional: ['content'] },
  infeasible: { does: 'fail', takes: { content: 'text' } },
  call_user: { does: 'fail', takes: { content: 'text' }, optional: ['content'] },
}

/**
 * Seed 1.5 to 1.8 and UI-TARS-2 on a computer: calls in XML between `<seed:tool_call>` marks (OSWorld `mm_agents/seed_agent.py`,
 * `GUI_TOOL_SCHEMAS`). Marks may end in `_never_used_` and a hash, as the model's own template writes them. Places are
 * `<point>x y</point>` in thousandths. What holds a key or a button from one call to the next (`mouse_down`, `press`) is refused.
 */
export const seedAdapter = adapterFrom({
  name: 'seed',
  coordinates: 'relative1000',
  words,
  calls: callsIn,
  write: ({ name, args }) => {
    const given = Object.entries(args).map(([key, value]) => `<parameter=${key}>\n${String(value)}\n</parameter>`)
    return `<seed:tool_call><function=${name}>${given.join('')}</function></seed:tool_call>`
  },
  place: {
    pattern: /^\s*<point>\s*(\d+(?:\.\d+)?)\s+(\d+(?:\.\d+)?)\s*<\/point>\s*$/,
    write: ({ x, y }) => `<point>${x} ${y}</point>`,
  },
  between: ' ',
  form: 'A call is written as <seed:tool_call><function=click><parameter=point><point>x y</point></parameter></function></seed:tool_call>. Keys of a hotkey have blanks between them, `direction` is up, down, left or right, `time` counts seconds.',
})

function callsIn(said: unknown): readonly WordCall[] | string {
  const missing =
    'No whole call was found. Write <seed:tool_call><function=…><parameter=…>…</parameter></function></seed:tool_call>.'
  if (typeof said !== 'string') return missing
  const plain = said.replaceAll(/(<\/?[\w:]+?)_never_used_[\da-f]+(?=[=>])/g, '$1')
  const text = spokenPart(plain.split('</gui_think>').at(-1) ?? plain)
  const marked = Array.from(text.matchAll(/<seed:tool_call>\s*([^]*?)\s*<\/seed:tool_call>/g), ([, one = '']) => one)
  const written = marked.flatMap((one) => one.split(/(?<=<\/function>)\s*(?=<function=)/))
  const calls = written.map(xmlCall).filter((one) => one !== null)
  const isWhole = calls.length === written.length && text.split('<seed:tool_call>').length === marked.length + 1
  return isWhole && calls.length > 0 ? calls : missing
}
