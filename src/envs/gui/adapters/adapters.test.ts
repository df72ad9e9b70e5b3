import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Action, keysOfCombination, type SingleAction } from '../actions/index.ts'
import { actionAdapters } from './index.ts'
import type { Scene } from './contract.ts'

const screen = { width: 1280, height: 800 }
const pointer = { x: 320, y: 200 }
const scene: Scene = { screen, pointer }

const place = fc.record({ x: fc.integer({ min: 0, max: 1279 }), y: fc.integer({ min: 0, max: 799 }) })
const keys = fc.constantFrom('Enter', 'ctrl+a', 'ctrl+shift+t', 'a', 'F5', 'shift+Tab', '+', 'ctrl++', 'alt+Left')
const held = fc.constantFrom<{ keys?: string }>({}, {}, { keys: 'shift' }, { keys: 'ctrl+shift' })
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
const turn = fc.constantFrom(-600, -240, -120, 0, 120, 600)

const click = (name: 'click' | 'double_click' | 'triple_click' | 'right_click' | 'middle_click') =>
  fc.tuple(place, held).map(([at, o]): SingleAction => ({ action: name, ...at, ...o }))
const path = fc.oneof(
  fc.array(place, { minLength: 2, maxLength: 4 }),
  place.map((to) => [pointer, to]),
)
const single: fc.Arbitrary<SingleAction> = fc.oneof(
  click('click'),
  click('double_click'),
  click('triple_click'),
  click('right_click'),
  click('middle_click'),
  place.map((at): SingleAction => ({ action: 'move', ...at })),
  fc.tuple(path, held).map(([points, o]): SingleAction => ({ action: 'drag', path: points, ...o })),
  fc
    .tuple(fc.oneof(place, fc.constant(pointer)), turn, turn, held)
    .map(([at, dx, dy, o]): SingleAction => ({ action: 'scroll', ...at, dx, dy, ...o })),
  text.map((typed): SingleAction => ({ action: 'type', text: typed })),
  fc
    .tuple(keys, fc.constantFrom(1, 1, 3))
    .map(([pressed, repeat]): SingleAction => ({ action: 'key', keys: pressed, repeat })),
  fc.constant<SingleAction>({ action: 'hold', keys: 'shift', seconds: 2 }),
  fc.constantFrom(0, 1, 2.5, 5).map((seconds): SingleAction => ({ action: 'wait', seconds })),
  fc.constant<SingleAction>({ action: 'screenshot' }),
  fc.constant<SingleAction>({ action: 'zoom', x: 100, y: 100, width: 200, height: 150 }),
  text.map((answer): SingleAction => ({ action: 'answer', text: answer })),
  fc.constant<SingleAction>({ action: 'done' }),
  fc.constantFrom('', 'no such page').map((reason): SingleAction => ({ action: 'fail', reason })),
)
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 5, arbitrary: single },
  fc.array(single, { minLength: 2, maxLength: 4 }).map((actions): Action => ({ action: 'batch', actions })),
)

/** Coordinates as numbers in order, and everything else apart from them: scaling may move a point by a pixel. */
function apart(given: Action): { readonly points: readonly number[]; readonly rest: unknown } {
  const points: number[] = []
  const rest: unknown = JSON.parse(JSON.stringify(given), (name, value: unknown) => {
    // Keys have several names; what counts is which key goes down.
    if (name === 'keys' && typeof value === 'string') return keysOfCombination(value)
    if (!['x', 'y', 'width', 'height'].includes(name) || typeof value !== 'number') return value
    points.push(value)
    return null
  })
  return { points, rest }
}

const adapters = [...actionAdapters.values()]

describe.each(adapters.map((adapter) => ({ name: adapter.name, adapter })))('$name', ({ adapter }) => {
  it('reads back every action that it can write', () => {
    const written = new Set<string>()
    const size = adapter.picture(screen)
    // A point is at most half a step of the model's picture away from where it was.
    const step = adapter.name === 'qwen' ? 2 : Math.ceil(screen.width / size.width)
    fc.assert(
      fc.property(action, (given) => {
        const words = adapter.write(given, scene)
        if (words === null) return
        written.add(given.action)
        const back = adapter.read(words, scene)
        expect(back).toMatchObject({ ok: true })
        if (!back.ok) return
        const [one, other] = [apart(given), apart(back.action)]
        expect(other.rest).toEqual(one.rest)
        one.points.forEach((value, at) => expect(Math.abs((other.points[at] ?? NaN) - value)).toBeLessThanOrEqual(step))
      }),
      { seed: 20_261_121, numRuns: 600 },
    )
    expect([...written]).toEqual(expect.arrayContaining(['click', 'type', 'key', 'double_click']))
  })

  it('answers anything at all with an action or with words that say what would be right', () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.string(), fc.object()), (said) => {
        const back = adapter.read(said, scene)
        if (!back.ok) expect(back.error.length).toBeGreaterThan(20)
      }),
      { seed: 20_261_121, numRuns: 300 },
    )
  })
})

/** What models really write, and what it means. Sources: see each adapter. */
const said: readonly (readonly [adapter: string, words: unknown, means: object | RegExp])[] = [
  ['openai', { type: 'click', button: 'left', x: 10, y: 20 }, { action: 'click', x: 10, y: 20 }],
  ['openai', { type: 'keypress', keys: ['CTRL', 'A'] }, { action: 'key', keys: 'CTRL+a' }],
  ['openai', { type: 'click', button: 'back', x: 1, y: 1 }, { action: 'key', keys: 'alt+Left' }],
  [
    'openai',
    {
      actions: [
        { type: 'move', x: 5, y: 5 },
        { type: 'type', text: 'hi' },
      ],
    },
    { action: 'batch', actions: [{ action: 'move' }, { action: 'type', text: 'hi' }] },
  ],
  ['openai', { type: 'click', x: 5000, y: 1 }, /outside of the screen/],
  ['openai', { actions: [{ type: 'screenshot' }, { type: 'drag', path: [{ x: 1, y: 1 }] }] }, /Action 2 of 2/],
  [
    'anthropic-20250124',
    { action: 'left_click', coordinate: [10, 20], text: 'ctrl' },
    { action: 'click', keys: 'ctrl' },
  ],
  ['anthropic-20250124', { action: 'left_click' }, { action: 'click', ...pointer }],
  ['anthropic-20250124', { action: 'key', text: 'Page_Down' }, { action: 'key', keys: 'Page_Down' }],
  [
    'anthropic-20250124',
    { action: 'scroll', coordinate: [1, 1], scroll_direction: 'down', scroll_amount: 3 },
    { action: 'scroll', dx: 0, dy: 360 },
  ],
  ['anthropic-20250124', { action: 'zoom', region: [0, 0, 10, 10] }, /not offered/],
  ['anthropic-20250124', { action: 'left_mouse_down' }, /left_click_drag/],
  ['anthropic-20251124', { action: 'zoom', region: [0, 0, 100, 50] }, { action: 'zoom', width: 100, height: 50 }],
  ['qwen', { action: 'left_click', coordinate: [500, 500] }, { action: 'click', x: 640, y: 400 }],
  [
    'qwen',
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "key", "keys": ["ctrl", "c"]}}\n</tool_call>',
    { action: 'key', keys: 'ctrl+c' },
  ],
  ['qwen', { action: 'scroll', pixels: -300 }, { action: 'scroll', dy: 300 }],
  ['qwen', { action: 'terminate', status: 'failure' }, { action: 'fail' }],
  ['qwen', { action: 'left_click', coordinate: [1000, 1000] }, { action: 'click', x: 1279, y: 799 }],
  ['qwen', { action: 'left_click', coordinate: [1001, 10] }, /0 to 1000\./],
  [
    'ui-tars',
    "Thought: I click.\nAction: click(point='<point>640 400</point>')",
    // The model saw 1288x812.
    { action: 'click', x: 636, y: 394 },
  ],
  ['ui-tars', "Action: click(start_box='(100,200)')", { action: 'click' }],
  ['ui-tars', "Action: type(content='it\\'s\\n')", { action: 'type', text: "it's\n" }],
  ['ui-tars', "Action: finished(content='42')", { action: 'answer', text: '42' }],
  ['ui-tars', "Action: __import__('os').system('id')", /cannot be read|no action/],
  ['osworld-computer-13', { action_type: 'CLICK', x: 1, y: 2, num_clicks: 2 }, { action: 'double_click', x: 1, y: 2 }],
  ['osworld-computer-13', { action_type: 'DRAG_TO', parameters: { x: 1, y: 2 } }, { action: 'drag' }],
  ['osworld-computer-13', 'DONE', { action: 'done' }],
  ['osworld-computer-13', { action_type: 'KEY_DOWN', parameters: { key: 'a' } }, /HOTKEY/],
  [
    'osworld-pyautogui',
    "import pyautogui\nimport time\npyautogui.click(100, 200)  # the menu\ntime.sleep(2)\npyautogui.write('a<b', interval=0.1)",
    {
      action: 'batch',
      actions: [
        { action: 'click', x: 100, y: 200 },
        { action: 'wait', seconds: 2 },
        { action: 'type', text: 'a<b' },
      ],
    },
  ],
  ['osworld-pyautogui', 'pyautogui.moveTo(5, 6); pyautogui.dragTo(50, 60, duration=1)', { action: 'batch' }],
  ['osworld-pyautogui', 'x = 1\npyautogui.click(x, 2)', /literal arguments/],
  ['osworld-pyautogui', "__import__('os').system('rm -rf /')", /literal arguments|not offered/],
  ['osworld-pyautogui', "os.system('id')", /not offered/],
  ['browsergym', "mouse_click(10, 20, button='right')", { action: 'right_click', x: 10, y: 20 }],
  ['browsergym', "keyboard_press('Control+Shift+a')", { action: 'key', keys: 'Control+Shift+a' }],
  ['browsergym', "click('a51')", /by element id/],
  ['miniwob', { action_type: 'CLICK_COORDS', coords: [3, 4] }, { action: 'click', x: 3, y: 4 }],
  ['miniwob', { action_type: 'PRESS_KEY', key: 'C-a' }, { action: 'key', keys: 'ctrl+a' }],
  ['miniwob', { action_type: 'PRESS_KEY', key: '<Enter>' }, { action: 'key', keys: 'Enter' }],
  ['miniwob', { action_type: 'CLICK_ELEMENT', ref: 3 }, /coordinates/],
]

it.each(said)('%s: %j', (name, words, means) => {
  const back = actionAdapters.get(name)?.read(words, scene)
  if (means instanceof RegExp) expect(back).toEqual({ ok: false, error: expect.stringMatching(means) })
  else expect(back).toMatchObject({ ok: true, action: means })
})

it('shows Anthropic a screen of a known shape smaller, and takes coordinates on that', () => {
  const large: Scene = { screen: { width: 2560, height: 1600 }, pointer: null }
  const adapter = actionAdapters.get('anthropic-20251124')
  expect(adapter?.picture(large.screen)).toEqual({ width: 1280, height: 800 })
  const read = (coordinate: readonly number[]) => adapter?.read({ action: 'mouse_move', coordinate }, large)
  expect(read([1279, 799])).toMatchObject({ action: { x: 2558, y: 1598 } })
  expect(read([1280, 10])).toMatchObject({ ok: false, error: expect.stringContaining('0 to 1279') })
})
