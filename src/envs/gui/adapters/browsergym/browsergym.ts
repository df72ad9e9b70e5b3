import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, type Point, type Scene, told } from '../contract.ts'
import { type Coordinates, type Grid, gridOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { argumentsOf, type Call, type Literal, parseCalls, quoted } from '../python-calls.ts'
import { canonical, codeIn, inTurn, spokenPart, writeAll } from '../read.ts'

const offered =
  'mouse_move, mouse_click, mouse_dblclick, mouse_drag_and_drop, scroll, keyboard_press, keyboard_type, noop, send_msg_to_user, report_infeasible'
const elements = new Set([
  'click',
  'dblclick',
  'hover',
  'fill',
  'press',
  'focus',
  'clear',
  'select_option',
  'drag_and_drop',
])

/**
 * BrowserGym's action calls by coordinates (ServiceNow/BrowserGym `core/action/functions.py`, sets `coord`, `chat`,
 * `infeas`): Python calls in text (also in `<action>…</action>` or fenced), parsed and never executed. Pixels. Calls by element id belong to that system's own
 * marking of the page; here elements have refs and tools of their own.
 */
export const browsergymAdapter = (coordinates: Coordinates = 'absolute'): ActionAdapter => ({
  name: 'browsergym',
  picture: (screen) => gridOf(coordinates, screen).picture,
  places: (screen) => gridOf(coordinates, screen).words,
  spoken: (screen) => spoken(gridOf(coordinates, screen)),
  read(said, scene) {
    if (typeof said !== 'string') return told('BrowserGym actions are text.')
    const parsed = parseCalls(codeIn(actionIn(said)))
    if (!parsed.ok) return told(`The action cannot be read: ${parsed.error}.`)
    if (parsed.calls.length === 0) return told(`There is no action. Use one of ${offered}.`)
    return inTurn(parsed.calls, scene, (call, here) => readCall(call, here, gridOf(coordinates, scene.screen)))
  },
  write(action, scene) {
    const lines = writeAll(action, (single) => writeCall(single, scene, gridOf(coordinates, scene.screen)))
    return lines === null ? null : lines.join('\n')
  },
})

/** What stands between the tags that BrowserGym's own agents ask for; the text itself without them. */
function actionIn(text: string): string {
  const said = spokenPart(text)
  const found = Array.from(said.matchAll(/<action>([\s\S]*?)<\/action>/g), ([, action = '']) => action)
  // One that does not end may lack the half of what was meant.
  const isWhole = said.split('<action>').length - 1 === found.length
  return found.length === 0 || !isWhole ? said : found.join('\n')
}

function spoken({ words }: Grid): string {
  return [
    'You use a web browser to do what the user asks. You are shown the page after each action. Think about what to do next, then write one action between <action> and </action>:',
    [
      'mouse_move(x, y)',
      "mouse_click(x, y, button='left')",
      'mouse_dblclick(x, y)',
      'mouse_drag_and_drop(from_x, from_y, to_x, to_y)',
      'scroll(delta_x, delta_y)  # pixels, down and right are positive',
      "keyboard_press('Control+a')",
      "keyboard_type('text')",
      'noop(wait_ms)',
      "send_msg_to_user('answer')  # ends: where something is asked, this is the answer; else say that it is done",
      "report_infeasible('reason')  # ends: it cannot be done",
    ].join('\n'),
    words,
    'For example:\n<think>The field comes first.</think>\n<action>mouse_click(' +
      (words.includes('fractions') ? '0.41, 0.23' : '412, 230') +
      ')</action>',
  ].join('\n\n')
}

const signatures: Readonly<Record<string, readonly string[]>> = {
  mouse_move: ['x', 'y'],
  mouse_click: ['x', 'y', 'button'],
  mouse_dblclick: ['x', 'y', 'button'],
  mouse_drag_and_drop: ['from_x', 'from_y', 'to_x', 'to_y'],
  scroll: ['delta_x', 'delta_y'],
  keyboard_press: ['key'],
  keyboard_type: ['text'],
  keyboard_insert_text: ['text'],
  noop: ['wait_ms'],
  send_msg_to_user: ['text'],
  report_infeasible: ['reason'],
}

function readCall(call: Call, scene: Scene, grid: Grid): ParsedAction {
  const signature = signatures[call.name]
  const given = signature === undefined ? new Map<string, Literal>() : argumentsOf(call, signature)
  if (typeof given === 'string') return told(given)
  const numbers = (...keys: readonly string[]): number[] | null => {
    const values = keys.map((key) => given.get(key))
    return values.every((value) => typeof value === 'number') ? values : null
  }
  const text = (key: string): string | null => {
    const value = given.get(key)
    return typeof value === 'string' ? value : null
  }
  const needs = (what: string) => told(`${call.name} needs ${what}.`)
  const place = (across: string, down: string): Point | ParsedAction => {
    const [x, y] = numbers(across, down) ?? []
    if (x === undefined || y === undefined) return needs(`the numbers ${across} and ${down}`)
    const meant = grid.toScreen({ x, y })
    return meant.ok ? meant.point : told(meant.error)
  }
  switch (call.name) {
    case 'mouse_move': {
      const at = place('x', 'y')
      return 'ok' in at ? at : canonical({ action: 'move', ...at }, scene)
    }
    case 'mouse_click':
    case 'mouse_dblclick': {
      const at = place('x', 'y')
      if ('ok' in at) return at
      const button = given.get('button') ?? 'left'
      if (call.name === 'mouse_dblclick') {
        return button === 'left' ? canonical({ action: 'double_click', ...at }, scene) : needs("button='left'")
      }
      if (button === 'left') return canonical({ action: 'click', ...at }, scene)
      if (button === 'right') return canonical({ action: 'right_click', ...at }, scene)
      return button === 'middle'
        ? canonical({ action: 'middle_click', ...at }, scene)
        : needs("button='left', 'middle' or 'right'")
    }
    case 'mouse_drag_and_drop': {
      const [from, to] = [place('from_x', 'from_y'), place('to_x', 'to_y')]
      if ('ok' in from) return from
      return 'ok' in to ? to : canonical({ action: 'drag', path: [from, to] }, scene)
    }
    case 'scroll': {
      const [dx, dy] = numbers('delta_x', 'delta_y') ?? []
      const { width, height } = scene.screen
      const at = scene.pointer ?? { x: Math.floor(width / 2), y: Math.floor(height / 2) }
      if (dx === undefined || dy === undefined) return needs('delta_x and delta_y')
      return canonical({ action: 'scroll', ...at, dx, dy }, scene)
    }
    case 'keyboard_press': {
      const key = text('key')
      if (key === null) return needs("key, as 'Control+a'")
      return canonical({ action: 'key', keys: joinKeys(splitKeys(key)), repeat: 1 }, scene)
    }
    case 'keyboard_type':
    case 'keyboard_insert_text': {
      const typed = text('text')
      return typed === null ? needs('text') : canonical({ action: 'type', text: typed }, scene)
    }
    case 'noop': {
      const ms = given.get('wait_ms') ?? 1000
      return typeof ms === 'number' ? canonical({ action: 'wait', seconds: ms / 1000 }, scene) : needs('wait_ms')
    }
    case 'send_msg_to_user': {
      const said = text('text')
      return said === null ? needs('text') : canonical({ action: 'answer', text: said }, scene)
    }
    case 'report_infeasible': {
      const reason = given.has('reason') ? text('reason') : ''
      return reason === null ? needs('reason, a text') : canonical({ action: 'fail', reason }, scene)
    }
    case 'mouse_down':
    case 'mouse_up':
      return told(`${call.name} is not offered: use mouse_drag_and_drop.`)
    case 'keyboard_down':
    case 'keyboard_up':
      return told(`${call.name} is not offered: use keyboard_press, as keyboard_press('Control+a').`)
  }
  if (elements.has(call.name)) {
    return told(
      `${call.name} by element id is not offered: use coordinates (${offered}), or the browser tools with refs.`,
    )
  }
  return told(`There is no action ${call.name}. Use one of ${offered}.`)
}

function writeCall(action: SingleAction, { pointer }: Scene, grid: Grid): string | null {
  const pair = (point: Point) => {
    const { x, y } = grid.fromScreen(point)
    return `${x}, ${y}`
  }
  if ('keys' in action && action.keys !== undefined && action.action !== 'key') return null
  switch (action.action) {
    case 'click':
      return `mouse_click(${pair(action)})`
    case 'right_click':
      return `mouse_click(${pair(action)}, button='right')`
    case 'middle_click':
      return `mouse_click(${pair(action)}, button='middle')`
    case 'double_click':
      return `mouse_dblclick(${pair(action)})`
    case 'move':
      return `mouse_move(${pair(action)})`
    case 'drag': {
      const [from, to, third] = action.path
      if (from === undefined || to === undefined || third !== undefined) return null
      return `mouse_drag_and_drop(${pair(from)}, ${pair(to)})`
    }
    case 'scroll':
      return action.x === pointer?.x && action.y === pointer.y ? `scroll(${action.dx}, ${action.dy})` : null
    case 'key':
      return action.repeat === 1 ? `keyboard_press(${quoted(action.keys)})` : null
    case 'type':
      return `keyboard_type(${quoted(action.text)})`
    case 'wait':
      return Number.isInteger(action.seconds * 1000) ? `noop(${action.seconds * 1000})` : null
    case 'answer':
      return `send_msg_to_user(${quoted(action.text)})`
    case 'fail':
      return `report_infeasible(${quoted(action.reason)})`
    case 'triple_click':
    case 'hold':
    case 'screenshot':
    case 'zoom':
    case 'done':
      return null
  }
}
