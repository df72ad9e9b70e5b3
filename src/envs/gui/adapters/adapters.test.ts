import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Action, keysOfCombination, type SingleAction } from '../actions/index.ts'
import { actionAdapters, adapterOf, type Coordinates, withCoordinates } from './index.ts'
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

const kinds: readonly Coordinates[] = [
  'absolute',
  'relative1000',
  'fraction',
  { resized: 28 },
  { resized: 32, maxPixels: 400_000 },
]
const adapters = [
  ...[...actionAdapters.values()].map((adapter) => ({ name: adapter.name, kind: null, adapter })),
  ...withCoordinates.flatMap((name) =>
    kinds.flatMap((kind) => {
      const adapter = adapterOf({ name, coordinates: kind })
      return adapter === null ? [] : [{ name, kind: JSON.stringify(kind), adapter }]
    }),
  ),
]

/** Schemas that have no word for one of the commonest actions. */
const lacks: Readonly<Record<string, readonly string[]>> = {
  gemini: ['type', 'double_click'],
  holo: ['key', 'double_click'],
}

describe.each(adapters)('$name $kind', ({ adapter }) => {
  it('reads back every action that it can write', () => {
    const written = new Set<string>()
    const size = adapter.picture(screen)
    // A point is at most half a step of the model's picture away from where it was.
    const thousands = adapter.places(screen).includes('thousandths')
    const step = thousands ? 2 : Math.ceil(screen.width / size.width)
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
      { seed: 20_261_121, numRuns: 300 },
    )
    const needed = ['click', 'type', 'key', 'double_click'].filter((one) => !lacks[adapter.name]?.includes(one))
    expect([...written]).toEqual(expect.arrayContaining(needed))
  })

  it('answers anything at all with an action or with words that say what would be right', () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.string(), fc.object()), (said) => {
        const back = adapter.read(said, scene)
        if (!back.ok) expect(back.error.length).toBeGreaterThan(20)
      }),
      { seed: 20_261_121, numRuns: 150 },
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
  ['qwen', { action: 'hscroll', pixels: 300 }, { action: 'scroll', x: 320, y: 200, dx: 300, dy: 0 }],
  ['qwen', { action: 'wait' }, { action: 'wait', seconds: 2 }],
  [
    'qwen',
    { action: 'left_click_drag', coordinate: [0, 0], coordinate2: [500, 500] },
    {
      action: 'drag',
      path: [
        { x: 0, y: 0 },
        { x: 640, y: 400 },
      ],
    },
  ],
  [
    'qwen',
    'I click.\n<tool_call>\n<function=computer_use>\n<parameter=action>\nleft_click\n</parameter>\n<parameter=coordinate>\n[500, 500]\n</parameter>\n</function>\n</tool_call>',
    { action: 'click', x: 640, y: 400 },
  ],
  [
    'qwen',
    '<tool_call><function=computer_use><parameter=action>type</parameter><parameter=text>\n12\n\n</parameter></function></tool_call>',
    { action: 'type', text: '12\n' },
  ],
  [
    'qwen',
    '<tool_call><function=computer_use><parameter=action>type</parameter> and <parameter=text>a</parameter></function></tool_call>',
    /No call was found/,
  ],
  [
    'qwen',
    '<tool_call><function=mobile_use><parameter=action>type</parameter></function></tool_call>',
    /No call was found/,
  ],
  [
    'qwen',
    '<tool_call><function=computer_use><parameter=action>wait</parameter><parameter=time>1</parameter><parameter=time>9</parameter></function></tool_call>',
    /No call was found/,
  ],
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
  ['ui-tars', "Action: scroll(direction='down')", { action: 'scroll', x: 320, y: 200, dy: 600 }],
  ['ui-tars', "Action: scroll(point='here', direction='down')", /needs point=/],
  ['ui-tars', "Action: hover(start_box='(100,200)')", { action: 'move' }],
  ['ui-tars', "Action: left_single(start_box='(100,200)')", { action: 'click' }],
  ['ui-tars', "Action: select(start_box='(0,0)', end_box='(644,406)')", { action: 'drag' }],
  ['ui-tars', "Action: press(key='enter')", { action: 'key', keys: 'enter' }],
  ['ui-tars', "Action: keyup(key='enter')", /no action keyup/],
  [
    'openai',
    {
      type: 'drag',
      path: [
        [1, 2],
        [30, 40],
      ],
    },
    {
      action: 'drag',
      path: [
        { x: 1, y: 2 },
        { x: 30, y: 40 },
      ],
    },
  ],
  ['openai', { type: 'drag', path: [[1, 2, 3]] }, /does not fit/],
  [
    'anthropic-20250124',
    { action: 'key', text: 'ctrl+a Delete' },
    {
      action: 'batch',
      actions: [
        { action: 'key', keys: 'ctrl+a' },
        { action: 'key', keys: 'Delete' },
      ],
    },
  ],
  ['anthropic-20250124', { action: 'key', text: ' Return ' }, { action: 'key', keys: 'Return' }],
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
  [
    'osworld-pyautogui',
    "pyautogui.keyDown('ctrl')\npyautogui.click(5, 6)\npyautogui.click(7, 8)\npyautogui.keyUp('ctrl')",
    {
      action: 'batch',
      actions: [
        { action: 'click', x: 5, keys: 'ctrl' },
        { action: 'click', x: 7, keys: 'ctrl' },
      ],
    },
  ],
  [
    'osworld-pyautogui',
    "pyautogui.keyDown('ctrl'); pyautogui.keyDown('shift'); pyautogui.press('t'); pyautogui.keyUp('shift'); pyautogui.keyUp('ctrl')",
    { action: 'key', keys: 'ctrl+shift+t' },
  ],
  [
    'osworld-pyautogui',
    "pyautogui.keyDown('ctrl'); pyautogui.keyDown('c'); pyautogui.keyUp('c'); pyautogui.keyUp('ctrl')",
    { action: 'key', keys: 'ctrl+c' },
  ],
  ['osworld-pyautogui', "pyautogui.keyDown('ctrl')\npyautogui.click(5, 6)", /Let go of ctrl/],
  ['osworld-pyautogui', "pyautogui.keyUp('ctrl')", /up already/],
  ['osworld-pyautogui', "pyautogui.keyDown('a'); pyautogui.keyDown('a')", /down already/],
  ['osworld-pyautogui', "pyautogui.keyDown('shift'); pyautogui.write('a'); pyautogui.keyUp('shift')", /keys are held/],
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
  // Examples of the Gemini API's page on computer use, "Supported actions".
  ['gemini', { name: 'click_at', args: { y: 300, x: 500 } }, { action: 'click', x: 640, y: 240 }],
  ['gemini', { name: 'hover_at', args: { y: 150, x: 250 } }, { action: 'move', x: 320, y: 120 }],
  [
    'gemini',
    { name: 'type_text_at', args: { y: 250, x: 400, text: 'search query', press_enter: false } },
    {
      action: 'batch',
      actions: [
        { action: 'click', x: 512, y: 200 },
        { action: 'key', keys: 'ctrl+a' },
        { action: 'key', keys: 'Delete' },
        { action: 'type', text: 'search query' },
      ],
    },
  ],
  [
    'gemini',
    { name: 'type_text_at', args: { y: 250, x: 400, text: 'a', clear_before_typing: false } },
    { action: 'batch', actions: [{ action: 'click' }, { action: 'type' }, { action: 'key', keys: 'Enter' }] },
  ],
  ['gemini', { name: 'key_combination', args: { keys: 'Control+A' } }, { action: 'key', keys: 'Control+A' }],
  ['gemini', { name: 'scroll_document', args: { direction: 'down' } }, { action: 'scroll', x: 640, y: 400, dy: 720 }],
  [
    'gemini',
    { name: 'scroll_at', args: { y: 500, x: 500, direction: 'left' } },
    { action: 'scroll', x: 640, y: 400, dx: -1024, dy: 0 },
  ],
  [
    'gemini',
    { name: 'drag_and_drop', args: { y: 100, destination_y: 500, destination_x: 500, x: 100 } },
    {
      action: 'drag',
      path: [
        { x: 128, y: 80 },
        { x: 640, y: 400 },
      ],
    },
  ],
  ['gemini', { name: 'wait_5_seconds', args: {} }, { action: 'wait', seconds: 5 }],
  ['gemini', { name: 'wait_5_seconds' }, { action: 'wait', seconds: 5 }],
  ['gemini', { name: 'go_back', args: {} }, { action: 'key', keys: 'alt+Left' }],
  [
    'gemini',
    [
      { name: 'hover_at', args: { x: 1, y: 1 } },
      { name: 'click_at', args: { x: 5, y: 5, safety_decision: { decision: 'regular' } } },
    ],
    { action: 'batch', actions: [{ action: 'move' }, { action: 'click' }] },
  ],
  ['gemini', { name: 'navigate', args: { url: 'https://www.wikipedia.org' } }, /no action "navigate"/],
  ['gemini', { name: 'click_at', args: { x: 5 } }, /needs y/],
  ['gemini', { name: 'click_at', args: { x: 5, y: 5, button: 'right' } }, /and no button/],
  ['gemini', { name: 'click_at', args: { x: '5', y: 5 } }, /does not fit: x/],
  ['gemini', { name: 'scroll_at', args: { x: 5, y: 5, direction: 'in' } }, /does not fit: direction/],
  ['gemini', 'click_at(x=5, y=5)', /has a name and args/],
  // Examples of hub.hcompany.ai "Agent loop" and of Holo1's pages.
  [
    'holo',
    {
      note: 'Submit succeeded; receipt URL is /orders/8421.',
      thought: 'Recording the receipt URL before navigating away.',
      tool_call: { tool_name: 'click', element: 'Continue button at the bottom right', x: 932, y: 880 },
    },
    { action: 'click', x: 1193, y: 704 },
  ],
  [
    'holo',
    '<think>{"tool_call": 1}</think>{"note": "", "thought": "I select the date.", "action": {"action": "click_element", "element": "August 6th, 2025 on the calendar", "x": 657, "y": 318}}',
    { action: 'click', x: 841, y: 254 },
  ],
  [
    'holo',
    {
      thought: '',
      action: { action: 'write_element_abs', content: 'avocado soup', element: 'search bar', x: 500, y: 500 },
    },
    { action: 'batch', actions: [{ action: 'click' }, { action: 'type', text: 'avocado soup' }, { action: 'key' }] },
  ],
  ['holo', { tool_call: { tool_name: 'write', content: 'a' } }, { action: 'type', text: 'a' }],
  [
    'holo',
    { tool_call: { tool_name: 'write', content: 'a', press_enter: true } },
    {
      action: 'batch',
      actions: [
        { action: 'type', text: 'a' },
        { action: 'key', keys: 'Enter' },
      ],
    },
  ],
  ['holo', { tool_call: { tool_name: 'answer', content: '42' } }, { action: 'answer', text: '42' }],
  ['holo', { action: { action: 'wait' } }, { action: 'wait', seconds: 2 }],
  ['holo', { action: { action: 'go_back' } }, { action: 'key', keys: 'alt+Left' }],
  ['holo', { action: { action: 'scroll', direction: 'up' } }, { action: 'scroll', dy: -600 }],
  ['holo', { action: { action: 'goto', url: 'https://a.test' } }, /no action "goto"/],
  ['holo', { tool_call: { tool_name: 'click', element: 'a', x: 5 } }, /needs y/],
  ['holo', { tool_call: { tool_name: 'click', x: 5, y: 5, button: 'right' } }, /and no button/],
  ['holo', { tool_call: { tool_name: 'click', x: 5, y: 5 }, action: { action: 'refresh' } }, /one JSON object/],
  ['holo', 'click(5, 5)', /one JSON object/],
  // The form of OSWorld's `seed_agent.py`, with the marks of the model's own template.
  [
    'seed',
    '<think_never_used_51bce0c785ca2f68081bfa7d91973934> <seed:tool_call> </think_never_used_51bce0c785ca2f68081bfa7d91973934>\n<seed:tool_call_never_used_51bce0c785ca2f68081bfa7d91973934><function_never_used_51bce0c785ca2f68081bfa7d91973934=click><parameter_never_used_51bce0c785ca2f68081bfa7d91973934=point><point>539 130</point></parameter_never_used_51bce0c785ca2f68081bfa7d91973934></function_never_used_51bce0c785ca2f68081bfa7d91973934></seed:tool_call_never_used_51bce0c785ca2f68081bfa7d91973934>',
    { action: 'click', x: 690, y: 104 },
  ],
  [
    'seed',
    '<gui_think>I type.</gui_think>\n<seed:tool_call>\n<function=type>\n<parameter=content>\nline one\nline two\n\n</parameter>\n</function>\n</seed:tool_call>',
    { action: 'type', text: 'line one\nline two\n' },
  ],
  [
    'seed',
    '<seed:tool_call><function=scroll><parameter=direction>down</parameter></function></seed:tool_call>',
    { action: 'scroll', x: 320, y: 200, dy: 600 },
  ],
  [
    'seed',
    '<seed:tool_call><function=hotkey><parameter=key>ctrl shift t</parameter></function><function=wait></function></seed:tool_call>',
    {
      action: 'batch',
      actions: [
        { action: 'key', keys: 'ctrl+shift+t' },
        { action: 'wait', seconds: 5 },
      ],
    },
  ],
  [
    'seed',
    '<seed:tool_call><function=wait><parameter=time>3</parameter></function></seed:tool_call>',
    { action: 'wait', seconds: 3 },
  ],
  [
    'seed',
    '<seed:tool_call><function=infeasible><parameter=content>no such page</parameter></function></seed:tool_call>',
    { action: 'fail', reason: 'no such page' },
  ],
  ['seed', '<seed:tool_call><function=finished></function></seed:tool_call>', { action: 'done' }],
  ['seed', '<seed:tool_call><function=mouse_down></function></seed:tool_call>', /no action "mouse_down"/],
  ['seed', '<seed:tool_call><function=click></function></seed:tool_call>', /needs point/],
  [
    'seed',
    '<seed:tool_call><function=click><parameter=point>539, 130, 9</parameter></function></seed:tool_call>',
    /does not fit: at/,
  ],
  [
    'seed',
    '<seed:tool_call><function=click><parameter=point><point>1 2</point></parameter> or </function></seed:tool_call>',
    /No whole call/,
  ],
  ['seed', '<seed:tool_call><function=wait></function></seed:tool_call><seed:tool_call>', /No whole call/],
  ['seed', "Action: click(point='<point>1 2</point>')", /No whole call/],
  // Examples of zai-org/GLM-V `examples/gui-agent`, with its coordinates.
  [
    'glm',
    "I can see the Google Shopping interface.\nleft_click(start_box='[376,465]')\nMemory:\n[]",
    { action: 'click', x: 481, y: 372 },
  ],
  ['glm', "type(content='drip coffee maker black')\nMemory:\n[]", { action: 'type', text: 'drip coffee maker black' }],
  [
    'glm',
    "<think>left_click(start_box='[1,1]')</think>I drag.\n<|begin_of_box|>left_drag(start_box='[0,0]', end_box='[500,500]', element_info='file')<|end_of_box|>\nMemory:\n[]",
    {
      action: 'drag',
      path: [
        { x: 0, y: 0 },
        { x: 640, y: 400 },
      ],
    },
  ],
  ['glm', "scroll(start_box='[500,500]', direction='up')", { action: 'scroll', x: 640, y: 400, dx: 0, dy: -600 }],
  ['glm', "scroll(start_box='[500,500]', direction='down', step=2)", { action: 'scroll', dy: 240 }],
  ['glm', "key(keys='ctrl+c')", { action: 'key', keys: 'ctrl+c' }],
  ['glm', 'WAIT()', { action: 'wait', seconds: 5 }],
  ['glm', 'It is done.\nDONE()\nMemory:\n[]', { action: 'done' }],
  ['glm', 'FAIL()', { action: 'fail' }],
  ['glm', "left_click(start_box='[1,2,3,4]')", /does not fit: at/],
  ['glm', "left_click(start_box='[1001,2]')", /0 to 1000\./],
  ['glm', "left_click('[1,2]')", /takes start_box, element_info, and no 0/],
  ['glm', "left_click(start_box='[1,2]', button='left')", /and no button/],
  ['glm', 'left_click()', /needs start_box/],
  ['glm', "left_click(start_box='[1,2]')\ntype(content='a')", /There are 2 actions/],
  ['glm', "I use left_click(start_box='[1,2]') now", /There are 0 actions/],
  ['glm', "scroll(start_box='[1,2]', direction='sideways')", /does not fit: direction/],
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

/** On 1280x800: what a model means by the kind of its coordinates, and what is refused as another kind. */
const counted: readonly (readonly [name: string, kind: Coordinates | null, words: unknown, means: object | RegExp])[] =
  [
    // Qwen2.5-VL saw 1288x812 where the screen has 1280x800; Qwen3-VL counts thousandths.
    ['qwen', { resized: 28 }, { action: 'left_click', coordinate: [1280, 406] }, { x: 1272, y: 400 }],
    ['qwen', { resized: 28 }, { action: 'left_click', coordinate: [1288, 10] }, /0 to 1287/],
    ['qwen', 'absolute', { action: 'left_click', coordinate: [1270, 10] }, { x: 1270, y: 10 }],
    ['qwen', 'fraction', { action: 'left_click', coordinate: [0.5, 1] }, { x: 640, y: 799 }],
    ['qwen', null, { action: 'left_click', coordinate: [0.5, 0.25] }, /thousandths/],
    // UI-TARS 1.0 and Doubao.
    ['ui-tars', 'relative1000', "Action: click(start_box='(500,500)')", { x: 640, y: 400 }],
    [
      'ui-tars',
      'relative1000',
      "Action: click(start_box='<|box_start|>(480,490,520,510)<|box_end|>')",
      { x: 640, y: 400 },
    ],
    [
      'ui-tars',
      'relative1000',
      "Action: click(point='<point>1200 400</point>')",
      /thousandths of the screen: x and y go from 0 to 1000/,
    ],
    ['ui-tars', null, "Action: click(start_box='[0.5, 0.25, 0.5, 0.25]')", /no place of pixels/],
    [
      'ui-tars',
      'fraction',
      "Action: drag(start_box='(0.5,0.5)', end_box='(0,0)')",
      {
        action: 'drag',
        path: [
          { x: 640, y: 400 },
          { x: 0, y: 0 },
        ],
      },
    ],
    // OpenCUA on the picture of its image processor; AgentNet and Aguvis.
    ['osworld-pyautogui', { resized: 28 }, 'pyautogui.click(x=1280, y=406)', { x: 1272, y: 400 }],
    ['osworld-pyautogui', 'fraction', 'pyautogui.click(x=0.5, y=0.25)', { x: 640, y: 200 }],
    ['osworld-pyautogui', 'fraction', 'pyautogui.click(x=640, y=200)', /fractions of the screen/],
    ['osworld-pyautogui', null, 'pyautogui.moveTo(0.5, 0.25)', /no place of pixels.*1280x800/],
    ['browsergym', 'relative1000', 'mouse_click(500, 500)', { x: 640, y: 400 }],
    ['browsergym', null, 'mouse_drag_and_drop(0.1, 0.2, 0.3, 0.4)', /no place of pixels/],
    ['osworld-computer-13', 'fraction', { action_type: 'CLICK', x: 0.5, y: 0.25 }, { x: 640, y: 200 }],
    // Of those whose coordinates are always pixels.
    ['openai', null, { type: 'click', x: 0.5, y: 0.25 }, /no place of pixels.*1280x800/],
    [
      'openai',
      null,
      {
        type: 'drag',
        path: [
          { x: 0.1, y: 0.2 },
          { x: 90, y: 90 },
        ],
      },
      /no place of pixels/,
    ],
    ['anthropic-20250124', null, { action: 'left_click', coordinate: [0.5, 0.25] }, /no place of pixels/],
    ['anthropic-20251124', null, { action: 'zoom', region: [0.1, 0.1, 0.5, 0.5] }, /no place of pixels/],
    ['anthropic-20251124', null, { action: 'zoom', region: [100, 100, 5000, 5000] }, /outside of the screen/],
    ['anthropic-20251124', null, { action: 'zoom', region: [0, 0, 1280, 800] }, { action: 'zoom' }],
    ['miniwob', null, { action_type: 'CLICK_COORDS', coords: [0.3, 0.4] }, /no place of pixels/],
  ]
it.each(counted)('%s with coordinates %j: %j', (name, kind, words, means) => {
  const adapter = adapterOf(kind === null ? name : { name, coordinates: kind })
  const back = adapter?.read(words, scene)
  if (means instanceof RegExp) expect(back).toEqual({ ok: false, error: expect.stringMatching(means) })
  else expect(back).toMatchObject({ ok: true, action: means })
})

/** What would be done otherwise than it was said, if what is not read were left out. */
const whole: readonly (readonly [name: string, words: unknown, means: object | RegExp])[] = [
  ['osworld-pyautogui', 'pyautogui.click((100, 200))', { action: 'click', x: 100, y: 200 }],
  ['osworld-pyautogui', 'pyautogui.moveTo(x=[100, 200])', { action: 'move', x: 100, y: 200 }],
  ['osworld-pyautogui', "pyautogui.click('save.png')", /two numbers/],
  ['osworld-pyautogui', 'pyautogui.click(100)', /two numbers/],
  ['osworld-pyautogui', "pyautogui.doubleClick(5, 6, button='right')", /done once only/],
  ['osworld-pyautogui', "pyautogui.click(5, 6, clicks=2, button='right')", /done once only/],
  ['osworld-pyautogui', 'pyautogui.click(5, 6, clicks=5)', /clicks of 1, 2 or 3/],
  ['osworld-pyautogui', "pyautogui.click(5, 6, modifiers=['shift'])", /takes x, y, clicks.*no modifiers/],
  ['osworld-pyautogui', "pyautogui.moveTo(1, 2)\npyautogui.dragTo(5, 6, button='right')", /button='left'/],
  ['osworld-pyautogui', 'pyautogui.scroll(5, 100)', /two numbers/],
  ['osworld-pyautogui', "pyautogui.press('a', presses='3')", /presses from 1/],
  ['osworld-pyautogui', "pyautogui.hotkey('ctrl', 3)", /hotkey needs keys/],
  ['osworld-pyautogui', "pyautogui.hotkey(['ctrl', 'c'])", { action: 'key', keys: 'ctrl+c' }],
  ['osworld-pyautogui', 'pyautogui.click(1, 2, x=3)', /x is given twice/],
  [
    'osworld-pyautogui',
    'First.\n```python\npyautogui.click(1, 2)\n```\nThen:\n```python\npyautogui.press("enter")\n```\n```\nDONE\n```',
    { action: 'batch', actions: [{ action: 'click' }, { action: 'key' }, { action: 'done' }] },
  ],
  ['osworld-pyautogui', '```DONE```', { action: 'done' }],
  [
    'osworld-pyautogui',
    "```python\ncomputer.terminate(status='success', answer='4')\n```",
    { action: 'answer', text: '4' },
  ],
  ['ui-tars', 'Action: click(point=(644, 406))', { action: 'click', x: 640, y: 400 }],
  ['ui-tars', "Action: click(point='<point>1 2 3</point>')", /needs point=/],
  ['ui-tars', "Action: click(point='<point>1 2</point>', button='right')", /takes point, and no button/],
  [
    'ui-tars',
    "Action: drag('<point>0 0</point>', '<point>644 406</point>')",
    {
      action: 'drag',
      path: [
        { x: 0, y: 0 },
        { x: 640, y: 400 },
      ],
    },
  ],
  ['ui-tars', "Action: wait()\n\nAction: finished(content='x')", /one is done at a time/],
  [
    'ui-tars',
    "<think>Action: wait()</think>Thought: a\nAction: type(content='\\u00e9')",
    { action: 'type', text: 'é' },
  ],
  ['browsergym', "mouse_click(1, 2, 'left', 'shift')", /4 arguments are too many/],
  ['browsergym', "noop(wait_ms='long')", /needs wait_ms/],
  ['browsergym', '<think>click(1)</think>\n<action>\nmouse_click(1, 2)\nnoop()\n</action>', { action: 'batch' }],
  ['osworld-computer-13', { action_type: 'CLICK', x: 5 }, /both x and y/],
  ['osworld-computer-13', { action_type: 'DOUBLE_CLICK', x: 5, y: 6, button: 'right' }, /once only/],
  ['osworld-computer-13', { action_type: 'RIGHT_CLICK', x: 5, y: 6, num_clicks: 2 }, /once only/],
  ['qwen', { action: 'left_click', coordinate: [1, 2], coordinate2: [3, 4] }, /coordinate2/],
  [
    'qwen',
    [
      [500, 500],
      [100, 100],
    ]
      .map(
        (at) =>
          `<tool_call>{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": ${JSON.stringify(at)}}}</tool_call>`,
      )
      .join('\n'),
    {
      action: 'batch',
      actions: [
        { action: 'click', x: 640 },
        { action: 'click', x: 128 },
      ],
    },
  ],
  ['qwen', '<tool_call>{"arguments": {"action": "wait", "time": 1}}</tool_call><tool_call>{"argu', /No call was found/],
  // A part of what was said is not done for the whole of it.
  ['osworld-computer-13', { action_type: 'SCROLL', parameters: { x: 500, y: 600, dy: -2 } }, /takes dx, dy, and no x/],
  ['osworld-computer-13', { action_type: 'CLICK', x: 5, y: 6, clicks: 2 }, /and no clicks/],
  ['osworld-computer-13', { action_type: 'DRAG_TO', x: 5, y: 6, button: 'right' }, /and no button/],
  ['osworld-computer-13', { action_type: 'PRESS', key: 'a', keys: ['ctrl', 'a'] }, /and no keys/],
  ['osworld-computer-13', { action_type: 'CLICK', parameters: {}, x: 5, y: 6 }, { action: 'click', x: 5, y: 6 }],
  ['openai', { type: 'double_click', x: 5, y: 6, button: 'right' }, /button/],
  ['openai', { type: 'click', x: 5, y: 6, clicks: 2 }, /clicks/],
  ['openai', { type: 'move', x: 5, y: 6, keys: ['CTRL'] }, /holds no keys/],
  ['openai', { type: 'wait', ms: 5000 }, /ms/],
  ['openai', { actions: [{ type: 'wait' }], type: 'click', x: 5, y: 6 }, /does not fit/],
  ['anthropic-20250124', { action: 'left_click', coordinate: [5, 6], clicks: 2 }, /clicks/],
  ['anthropic-20250124', { action: 'left_click_drag', coordinate: [5, 6], text: 'shift' }, /and no text/],
  ['anthropic-20250124', { action: 'type', text: 'a', coordinate: [5, 6] }, /takes text, and no coordinate/],
  ['anthropic-20250124', { action: 'key', text: 'a', duration: 3 }, /takes text, and no duration/],
  ['qwen', { action: 'left_click', coordinate: [500, 500], keys: ['ctrl'] }, /takes coordinate, and no keys/],
  ['qwen', { action: 'type', text: 'a', coordinate: [500, 500] }, /takes text, and no coordinate/],
  ['qwen', { action: 'left_click', coordinate: [500, 500], keys: null }, { action: 'click' }],
  [
    'qwen',
    '<tool_call>{"name": "mobile_use", "arguments": {"action": "type", "text": "a"}}</tool_call>',
    /No call was found/,
  ],
  ['miniwob', { action_type: 'CLICK_COORDS', coords: [3, 4], button: 'right' }, /and no button/],
  ['miniwob', { action_type: 'TYPE_TEXT', text: 'a', coords: [3, 4] }, /takes text, and no coords/],
  ['ui-tars', "Action: click(point='<point>1 2</point>') Action: wait()", /cannot be read/],
  ['ui-tars', "Thought: Action: click(point='<point>1 2</point>')\nAction: wait()", /this says two/],
  ['ui-tars', "Action: type(content='Action: x')", { action: 'type', text: 'Action: x' }],
  ['ui-tars', "Action: click(point='50% 25%')", /needs point=/],
  ['ui-tars', "Action: click(point=[100, 200, 'left'])", /needs point=/],
  ['ui-tars', "Action: click(point='<point>640 400</point><point>10 20</point>')", /needs point=/],
  ['ui-tars', "Action: click(start_box='(1,2)', point='<point>5 6</point>')", /a place twice/],
  ['ui-tars', 'Action: finished(content=42)', /needs content/],
  [
    'osworld-pyautogui',
    "import time\npyautogui.write('''Dear Bob\nfrom now on\nimport nothing''')",
    { action: 'type', text: 'Dear Bob\nfrom now on\nimport nothing' },
  ],
  ['osworld-pyautogui', '```\npyautogui.click(1, 2)\n```\n```\npyautogui.click(3', /literal arguments/],
  ['osworld-pyautogui', "pyautogui.write('\\101\\x42')", { action: 'type', text: 'AB' }],
  ['osworld-pyautogui', "pyautogui.write('\\N{DASH}')", /by its name/],
  ['osworld-pyautogui', "computer.terminate(status='success', answer=42)", /answer in quotes/],
  ['osworld-pyautogui', "computer.terminate(status='failure', answer='no')", { action: 'fail', reason: 'no' }],
  ['browsergym', '<action>mouse_click(1, 2)</action><action>noop(', /cannot be read/],
  ['browsergym', 'report_infeasible(reason=5)', /needs reason/],
]
it.each(whole)('%s is read whole or not at all: %j', (name, words, means) => {
  const back = adapterOf(name)?.read(words, scene)
  if (means instanceof RegExp) expect(back).toEqual({ ok: false, error: expect.stringMatching(means) })
  else expect(back).toMatchObject({ ok: true, action: means })
})
