import type { ParsedAction, Screen, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from '../contract.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { type Call, parseCalls, quoted } from '../python-calls.ts'
import { batched, canonical, outside, scaled } from '../read.ts'

/** Sides are multiples of this (Qwen2.5-VL: 14-pixel patches, merged two by two). */
const factor = 28
const fewestPixels = 100 * factor * factor
const mostPixels = 16_384 * factor * factor
/** One `scroll` turns the wheel by this many notches (`pyautogui.scroll(5)` of UI-TARS' `action_parser.py`). */
const scrollNotches = 5
/** `wait()` sleeps this long, as the model is told. */
const waitSeconds = 5

const clicks = { click: 'click', left_double: 'double_click', right_single: 'right_click' } as const
const clickNames = Object.entries(clicks)
const offered =
  "click(point='<point>x y</point>'), left_double, right_single, drag, hotkey, type, scroll, wait, finished"

/**
 * UI-TARS text: `Thought: … Action: click(point='<point>200 300</point>')` (bytedance/UI-TARS `codes/ui_tars/prompt.py`,
 * `action_parser.py`), also the boxes of version 1 (`start_box='(200,300)'`). Coordinates are on the picture as the
 * model's image processor resizes it (`smart_resize`).
 */
export const uiTarsAdapter: ActionAdapter = {
  name: 'ui-tars',
  picture: smartResize,
  read(said, scene) {
    if (typeof said !== 'string') return told('UI-TARS speaks in text: Thought: ... Action: ...')
    const text = (said.includes('Action:') ? said.slice(said.lastIndexOf('Action:') + 7) : said).trim()
    const parsed = parseCalls(text)
    if (!parsed.ok) return told(`The action cannot be read: ${parsed.error}.`)
    if (parsed.calls.length === 0) return told(`There is no action. Write Action: and one of ${offered}.`)
    return batched(
      parsed.calls.map((call) => readCall(call, scene)),
      scene,
    )
  },
  write: (action, { screen }) => (action.action === 'batch' ? null : writeCall(action, screen)),
}

/** The size to which Qwen2-VL's image processor brings a picture (`smart_resize` of qwen-vl-utils). */
function smartResize({ width, height }: Screen): Screen {
  const near = (value: number) => Math.max(factor, Math.round(value / factor) * factor)
  const [w, h] = [near(width), near(height)]
  if (w * h > mostPixels) {
    const by = Math.sqrt((width * height) / mostPixels)
    return { width: Math.floor(width / by / factor) * factor, height: Math.floor(height / by / factor) * factor }
  }
  if (w * h < fewestPixels) {
    const by = Math.sqrt(fewestPixels / (width * height))
    return { width: Math.ceil((width * by) / factor) * factor, height: Math.ceil((height * by) / factor) * factor }
  }
  return { width: w, height: h }
}

function readCall(call: Call, scene: Scene): ParsedAction {
  const point = (...names: readonly string[]): Point | ParsedAction => {
    const given = names.map((name) => call.keyword.get(name)).find((value) => value !== undefined) ?? call.positional[0]
    const numbers = typeof given === 'string' ? (given.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number) : []
    const [x, y, right, bottom] = numbers
    if (x === undefined || y === undefined) return told(`${call.name} needs ${names[0]}='<point>x y</point>'.`)
    const middle = right === undefined || bottom === undefined ? { x, y } : { x: (x + right) / 2, y: (y + bottom) / 2 }
    const picture = smartResize(scene.screen)
    const beside = outside(middle, picture)
    if (beside !== null) return told(beside)
    return {
      x: scaled(middle.x, picture.width, scene.screen.width),
      y: scaled(middle.y, picture.height, scene.screen.height),
    }
  }
  const text = (name: string): string | null => {
    const given = call.keyword.get(name) ?? call.positional[0]
    return typeof given === 'string' ? given : null
  }
  const click = clickNames.find(([name]) => name === call.name)?.[1]
  if (click !== undefined) {
    const at = point('point', 'start_box')
    return 'ok' in at ? at : canonical({ action: click, ...at }, scene)
  }
  switch (call.name) {
    case 'drag': {
      const from = point('start_point', 'start_box')
      const to = point('end_point', 'end_box')
      if ('ok' in from) return from
      return 'ok' in to ? to : canonical({ action: 'drag', path: [from, to] }, scene)
    }
    case 'hotkey': {
      const keys =
        text('key')
          ?.split(' ')
          .filter((key) => key !== '') ?? []
      return keys.length === 0
        ? told("hotkey needs key='ctrl c'.")
        : canonical({ action: 'key', keys: joinKeys(keys), repeat: 1 }, scene)
    }
    case 'type': {
      const content = text('content')
      return content === null ? told("type needs content='...'.") : canonical({ action: 'type', text: content }, scene)
    }
    case 'scroll': {
      const at = point('point', 'start_box')
      if ('ok' in at) return at
      const way = scrollNotches * notch
      const ways = { up: [0, -way], down: [0, way], left: [-way, 0], right: [way, 0] } as const
      const direction = Object.entries(ways).find(([name]) => name === call.keyword.get('direction'))?.[1]
      if (direction === undefined) return told("scroll needs direction='down', 'up', 'left' or 'right'.")
      return canonical({ action: 'scroll', ...at, dx: direction[0], dy: direction[1] }, scene)
    }
    case 'wait':
      return canonical({ action: 'wait', seconds: waitSeconds }, scene)
    case 'finished': {
      const content = text('content') ?? ''
      return canonical(content === '' ? { action: 'done' } : { action: 'answer', text: content }, scene)
    }
    case 'call_user':
      return canonical({ action: 'fail', reason: '' }, scene)
  }
  return told(`There is no action ${call.name}. Use one of ${offered}.`)
}

function writeCall(action: SingleAction, screen: Screen): string | null {
  const picture = smartResize(screen)
  const point = ({ x, y }: Point) =>
    `'<point>${scaled(x, screen.width, picture.width)} ${scaled(y, screen.height, picture.height)}</point>'`
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
