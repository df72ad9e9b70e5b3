import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from '../contract.ts'
import { type Coordinates, type Grid, gridOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { argumentsOf, type Call, type Literal, parseCalls, quoted } from '../python-calls.ts'
import { canonical, inTurn, middleOf, spokenPart } from '../read.ts'

/** Of version 1.5: the picture of Qwen2.5-VL's image processor, with the bounds of UI-TARS' `action_parser.py`. */
const resized: Coordinates = { resized: 28, minPixels: 100 * 28 * 28, maxPixels: 16_384 * 28 * 28 }
/** One `scroll` turns the wheel by this many notches (`pyautogui.scroll(5)` of UI-TARS' `action_parser.py`). */
const scrollNotches = 5
/** `wait()` sleeps this long, as the model is told. */
const waitSeconds = 5

/** Words that a place is enough for: of the prompt, then the older words that `action_parser.py` still takes. */
const clicks = {
  click: 'click',
  left_double: 'double_click',
  right_single: 'right_click',
  left_single: 'click',
  hover: 'move',
} as const
const clickNames = Object.entries(clicks)
const offered =
  "click(point='<point>x y</point>'), left_double, right_single, drag, hotkey, type, scroll, wait, finished"

/**
 * UI-TARS text: `Thought: … Action: click(point='<point>200 300</point>')` (bytedance/UI-TARS `codes/ui_tars/prompt.py`,
 * `action_parser.py`), also the boxes of version 1 (`start_box='(200,300)'`). Coordinates are on the picture as the
 * model's image processor resizes it, unless it is told otherwise: version 1 and Doubao count thousandths.
 */
export const uiTarsAdapter = (coordinates: Coordinates = resized): ActionAdapter => ({
  name: 'ui-tars',
  picture: (screen) => gridOf(coordinates, screen).picture,
  places: (screen) => gridOf(coordinates, screen).words,
  spoken: (screen) => spoken(gridOf(coordinates, screen)),
  read(whole, scene) {
    if (typeof whole !== 'string') return told('UI-TARS speaks in text: Thought: ... Action: ...')
    const said = spokenPart(whole)
    const marks = [...said.matchAll(/^\s*Action:/gm)]
    if (marks.length > 1)
      return told(`There are ${marks.length} lines that begin with Action: and one is done at a time.`)
    if (/Action:\s*\w+\(/.test(said.slice(0, marks[0]?.index ?? 0)))
      return told('One action is done at a time, and this says two.')
    const [mark] = marks.length === 1 ? marks : [...said.matchAll(/Action:/g)]
    const text = (mark === undefined ? said : said.slice(mark.index + mark[0].length)).trim()
    const parsed = parseCalls(text)
    if (!parsed.ok) return told(`The action cannot be read: ${parsed.error}.`)
    if (parsed.calls.length === 0) return told(`There is no action. Write Action: and one of ${offered}.`)
    const grid = gridOf(coordinates, scene.screen)
    return inTurn(parsed.calls, scene, (call, here) => {
      const named = withPoints(call)
      return typeof named === 'string' ? told(named) : readCall(named, here, grid)
    })
  },
  write: (action, { screen }) => (action.action === 'batch' ? null : writeCall(action, gridOf(coordinates, screen))),
})

const spokenActions = [
  "click(point='<point>x1 y1</point>')",
  "left_double(point='<point>x1 y1</point>')",
  "right_single(point='<point>x1 y1</point>')",
  "drag(start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>')",
  "hotkey(key='ctrl c') # keys in lower case with a blank between, at most three",
  "type(content='xxx') # with the escapes \\', \\\" and \\n; end it with \\n to submit",
  "scroll(point='<point>x1 y1</point>', direction='down or up or right or left')",
  `wait() # ${waitSeconds} s, then a screenshot`,
  "finished(content='xxx') # ends; content is the answer where something is asked",
  'call_user() # ends: it cannot be done',
]

function spoken({ words }: Grid): string {
  return [
    'You are a GUI agent. You are given a task and your action history, with screenshots. You need to perform the next action to complete the task.',
    '## Output Format\n```\nThought: ...\nAction: ...\n```',
    `## Action Space\n\n${spokenActions.join('\n')}`,
    `## Note\n- Write a small plan and, in one sentence, your next action with its target in the \`Thought\` part.\n- ${words}`,
  ].join('\n\n')
}

/** Version 1 says boxes where version 1.5 says points; who says both says nothing. */
function withPoints(call: Call): Call | string {
  const names: Readonly<Record<string, string>> =
    call.name === 'drag' || call.name === 'select'
      ? { start_box: 'start_point', end_box: 'end_point' }
      : { start_box: 'point' }
  const renamed = [...call.keyword].map(([name, value]) => [names[name] ?? name, value] as const)
  const keyword = new Map(renamed)
  return keyword.size < renamed.length ? `${call.name} names a place twice.` : { ...call, keyword }
}

const signatures: Readonly<Record<string, readonly string[]>> = {
  click: ['point'],
  left_double: ['point'],
  right_single: ['point'],
  left_single: ['point'],
  hover: ['point'],
  drag: ['start_point', 'end_point'],
  select: ['start_point', 'end_point'],
  hotkey: ['key'],
  press: ['key'],
  type: ['content'],
  scroll: ['point', 'direction'],
  wait: [],
  finished: ['content'],
  call_user: [],
}

function readCall(call: Call, scene: Scene, grid: Grid): ParsedAction {
  const signature = signatures[call.name]
  if (signature === undefined) return told(`There is no action ${call.name}. Use one of ${offered}.`)
  const given = argumentsOf(call, signature)
  if (typeof given === 'string') return told(given)
  /** A point, or the middle of a box. */
  const point = (name: string): Point | ParsedAction => {
    const numbers = numbersIn(given.get(name))
    const [x, y, right = x, bottom = y] = numbers
    if (x === undefined || y === undefined || right === undefined || bottom === undefined) {
      return told(`${call.name} needs ${name}='<point>x y</point>'.`)
    }
    const meant = grid.toScreen({ x: (x + right) / 2, y: (y + bottom) / 2 })
    return meant.ok ? meant.point : told(meant.error)
  }
  const text = (name: string): string | null => {
    const value = given.get(name)
    return typeof value === 'string' ? value : null
  }
  const click = clickNames.find(([name]) => name === call.name)?.[1]
  if (click !== undefined) {
    const at = point('point')
    return 'ok' in at ? at : canonical({ action: click, ...at }, scene)
  }
  switch (call.name) {
    case 'drag':
    case 'select': {
      const from = point('start_point')
      const to = point('end_point')
      if ('ok' in from) return from
      return 'ok' in to ? to : canonical({ action: 'drag', path: [from, to] }, scene)
    }
    case 'hotkey':
    case 'press': {
      const keys =
        text('key')
          ?.split(' ')
          .filter((key) => key !== '') ?? []
      return keys.length === 0
        ? told(`${call.name} needs key='ctrl c'.`)
        : canonical({ action: 'key', keys: joinKeys(keys), repeat: 1 }, scene)
    }
    case 'type': {
      const content = text('content')
      return content === null ? told("type needs content='...'.") : canonical({ action: 'type', text: content }, scene)
    }
    case 'scroll': {
      const at = given.has('point') ? point('point') : (scene.pointer ?? middleOf(scene.screen))
      if ('ok' in at) return at
      const way = scrollNotches * notch
      const ways = { up: [0, -way], down: [0, way], left: [-way, 0], right: [way, 0] } as const
      const direction = Object.entries(ways).find(([name]) => name === given.get('direction'))?.[1]
      if (direction === undefined) return told("scroll needs direction='down', 'up', 'left' or 'right'.")
      return canonical({ action: 'scroll', ...at, dx: direction[0], dy: direction[1] }, scene)
    }
    case 'wait':
      return canonical({ action: 'wait', seconds: waitSeconds }, scene)
    case 'finished': {
      const content = given.has('content') ? text('content') : ''
      if (content === null) return told("finished needs content='...'.")
      return canonical(content === '' ? { action: 'done' } : { action: 'answer', text: content }, scene)
    }
    case 'call_user':
      return canonical({ action: 'fail', reason: '' }, scene)
  }
  return told(`There is no action ${call.name}. Use one of ${offered}.`)
}

const number = String.raw`-?(?:\d+\.?\d*|\.\d+)`
/** Numbers between blanks, commas and brackets, within one mark of the model's: anything else makes them something else. */
const numbers = new RegExp(
  String.raw`^\s*(?:<[|\w]+>)?[\s([]*((?:x=)?${number}(?:[\s,]+(?:y=)?${number})+)[\s)\]]*(?:<[/|\w]+>)?\s*$`,
)

/** Two numbers of a point or four of a box, in a text or as a tuple; nothing for any other number of them. */
function numbersIn(given: Literal | undefined): readonly number[] {
  const found = Array.isArray(given)
    ? given
    : (numbers.exec(typeof given === 'string' ? given : '')?.[1]?.split(/[\s,xy=]+/) ?? [])
        .filter((one) => one !== '')
        .map(Number)
  const all = found.filter((value) => typeof value === 'number')
  return all.length === found.length && (all.length === 2 || all.length === 4) ? all : []
}

function writeCall(action: SingleAction, grid: Grid): string | null {
  const point = (place: Point) => {
    const { x, y } = grid.fromScreen(place)
    return `'<point>${x} ${y}</point>'`
  }
  switch (action.action) {
    case 'click':
    case 'double_click':
    case 'right_click': {
      const name = clickNames.find(([, canonicalName]) => canonicalName === action.action)?.[0]
      return action.keys === undefined ? `Action: ${name}(point=${point(action)})` : null
    }
    case 'drag': {
      const [from, to, third] = action.path
      if (from === undefined || to === undefined || third !== undefined || action.keys !== undefined) return null
      return `Action: drag(start_point=${point(from)}, end_point=${point(to)})`
    }
    case 'key': {
      const keys = splitKeys(action.keys)
      if (action.repeat !== 1 || keys.some((key) => key.includes(' '))) return null
      return `Action: hotkey(key=${quoted(keys.join(' '))})`
    }
    case 'type':
      return `Action: type(content=${quoted(action.text)})`
    case 'scroll': {
      const { dx, dy } = action
      const way = scrollNotches * notch
      if (action.keys !== undefined || (dx !== 0 && dy !== 0) || Math.abs(dx + dy) !== way) return null
      const direction = dx === 0 ? (dy < 0 ? 'up' : 'down') : dx < 0 ? 'left' : 'right'
      return `Action: scroll(point=${point(action)}, direction='${direction}')`
    }
    case 'wait':
      return action.seconds === waitSeconds ? 'Action: wait()' : null
    case 'answer':
      return `Action: finished(content=${quoted(action.text)})`
    case 'done':
      return "Action: finished(content='')"
    case 'fail':
      return action.reason === '' ? 'Action: call_user()' : null
    case 'middle_click':
    case 'triple_click':
    case 'move':
    case 'hold':
    case 'screenshot':
    case 'zoom':
      return null
  }
}
