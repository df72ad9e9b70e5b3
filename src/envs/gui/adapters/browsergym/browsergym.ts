import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, type Scene, told } from '../contract.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { type Call, parseCalls, quoted } from '../python-calls.ts'
import { batched, canonical, writeAll } from '../read.ts'

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
 * `infeas`): Python calls in text, parsed and never executed. Pixels. Calls by element id belong to that system's own
 * marking of the page; here elements have refs and tools of their own.
 */
export const browsergymAdapter: ActionAdapter = {
  name: 'browsergym',
  picture: (screen) => screen,
  read(said, scene) {
    if (typeof said !== 'string') return told('BrowserGym actions are text.')
    const parsed = parseCalls(/```\w*\s*\n([\s\S]*?)```/.exec(said)?.[1] ?? said)
    if (!parsed.ok) return told(`The action cannot be read: ${parsed.error}.`)
    if (parsed.calls.length === 0) return told(`There is no action. Use one of ${offered}.`)
    return batched(
      parsed.calls.map((call) => readCall(call, scene)),
      scene,
    )
  },
  write(action, scene) {
    const lines = writeAll(action, (single) => writeCall(single, scene))
    return lines === null ? null : lines.join('\n')
  },
}

function readCall(call: Call, scene: Scene): ParsedAction {
  const given = (at: number, key: string) => call.keyword.get(key) ?? call.positional[at]
  const numbers = (...keys: readonly string[]): number[] | null => {
    const values = keys.map((key, at) => given(at, key))
    return values.every((value) => typeof value === 'number') ? values : null
  }
  const text = (key: string): string | null => {
    const value = given(0, key)
    return typeof value === 'string' ? value : null
  }
  const needs = (what: string) => told(`${call.name} needs ${what}.`)
  switch (call.name) {
    case 'mouse_move': {
      const [x, y] = numbers('x', 'y') ?? []
      return x === undefined || y === undefined ? needs('x and y') : canonical({ action: 'move', x, y }, scene)
    }
    case 'mouse_click':
    case 'mouse_dblclick': {
      const [x, y] = numbers('x', 'y') ?? []
      if (x === undefined || y === undefined) return needs('x and y')
      const button = given(2, 'button') ?? 'left'
      if (call.name === 'mouse_dblclick') {
        return button === 'left' ? canonical({ action: 'double_click', x, y }, scene) : needs("button='left'")
      }
      if (button === 'left') return canonical({ action: 'click', x, y }, scene)
      if (button === 'right') return canonical({ action: 'right_click', x, y }, scene)
      return button === 'middle'
        ? canonical({ action: 'middle_click', x, y }, scene)
        : needs("button='left', 'middle' or 'right'")
    }
    case 'mouse_drag_and_drop': {
      const [fromX, fromY, x, y] = numbers('from_x', 'from_y', 'to_x', 'to_y') ?? []
      if (fromX === undefined || fromY === undefined || x === undefined || y === undefined) {
        return needs('from_x, from_y, to_x and to_y')
      }
      return canonical(
        {
          action: 'drag',
          path: [
            { x: fromX, y: fromY },
            { x, y },
          ],
        },
        scene,
      )
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
      const [ms] = numbers('wait_ms') ?? []
      return canonical({ action: 'wait', seconds: (ms ?? 1000) / 1000 }, scene)
    }
    case 'send_msg_to_user': {
      const said = text('text')
      return said === null ? needs('text') : canonical({ action: 'answer', text: said }, scene)
    }
    case 'report_infeasible':
      return canonical({ action: 'fail', reason: text('reason') ?? '' }, scene)
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

function writeCall(action: SingleAction, { pointer }: Scene): string | null {
  if ('keys' in action && action.keys !== undefined && action.action !== 'key') return null
  switch (action.action) {
    case 'click':
      return `mouse_click(${action.x}, ${action.y})`
    case 'right_click':
      return `mouse_click(${action.x}, ${action.y}, button='right')`
    case 'middle_click':
      return `mouse_click(${action.x}, ${action.y}, button='middle')`
    case 'double_click':
      return `mouse_dblclick(${action.x}, ${action.y})`
    case 'move':
      return `mouse_move(${action.x}, ${action.y})`
    case 'drag': {
      const [from, to, third] = action.path
      if (from === undefined || to === undefined || third !== undefined) return null
      return `mouse_drag_and_drop(${from.x}, ${from.y}, ${to.x}, ${to.y})`
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
