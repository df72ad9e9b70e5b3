import { z } from 'zod'
import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { clickNames, clicks } from '../clicks.ts'
import { type ActionAdapter, type Point, type Scene, told } from '../contract.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { canonical, fitting, scaled } from '../read.ts'

const input = z.object({
  action: z.string(),
  keys: z.array(z.string()).nullish(),
  text: z.string().nullish(),
  coordinate: z.tuple([z.number(), z.number()]).nullish(),
  pixels: z.number().nullish(),
  time: z.number().nullish(),
  status: z.enum(['success', 'failure']).nullish(),
})
type Input = z.infer<typeof input>

const others = ['mouse_move', 'left_click_drag', 'key', 'type', 'scroll', 'wait', 'answer', 'terminate']

/**
 * Coordinates go from 0 to here on both axes: models are told of a screen of 1000x1000 and their answers are divided by 1000
 * (Qwen3-VL cookbook `computer_use`). EvoCUA's `--coordinate_type relative` ends at 999, which lies within. The end itself is
 * the last pixel.
 */
const span = 1000

/**
 * Qwen's `computer_use`, as tool arguments or as the text in which the model writes the call
 * (`<tool_call>{"name": "computer_use", "arguments": {...}}</tool_call>`). Coordinates are thousandths of the screen;
 * `pixels` is positive upwards; a drag goes from where the mouse is.
 */
export const qwenAdapter: ActionAdapter = {
  name: 'qwen',
  picture: (screen) => screen,
  read(said, scene) {
    const given = typeof said === 'string' ? argumentsIn(said) : said
    if (given === null) {
      return told(
        'No call was found. Write <tool_call>{"name": "computer_use", "arguments": {"action": ...}}</tool_call>.',
      )
    }
    const parsed = fitting(input, given)
    return parsed.ok ? readInput(parsed.value, scene) : told(`The computer_use call does not fit: ${parsed.error}.`)
  },
  write: (action, scene) => (action.action === 'batch' ? null : writeInput(action, scene)),
}

function argumentsIn(text: string): unknown {
  const call = /<tool_call>\s*([\s\S]*?)\s*<\/tool_call>/.exec(text)?.[1] ?? text
  try {
    const parsed: unknown = JSON.parse(call)
    return typeof parsed === 'object' && parsed !== null && 'arguments' in parsed ? parsed.arguments : parsed
  } catch {
    return null
  }
}

function readInput(said: Input, scene: Scene): ParsedAction {
  const { screen, pointer } = scene
  const { coordinate } = said
  if (coordinate != null && coordinate.some((part) => part < 0 || part > span)) {
    return told(`The coordinate [${coordinate.join(', ')}] is outside of the screen: both parts go from 0 to ${span}.`)
  }
  const named: Point | null =
    coordinate == null
      ? null
      : { x: scaled(coordinate[0], span, screen.width), y: scaled(coordinate[1], span, screen.height) }
  const point = named ?? pointer
  const needs = (what: string) => told(`The action ${said.action} needs ${what}.`)
  const click = clickNames.find(([name]) => name === said.action)?.[1]
  if (click !== undefined) return point === null ? needs('coordinate') : canonical({ action: click, ...point }, scene)
  switch (said.action) {
    case 'mouse_move':
      return named === null ? needs('coordinate') : canonical({ action: 'move', ...named }, scene)
    case 'left_click_drag':
      if (named === null) return needs('coordinate')
      if (pointer === null) return told('A drag begins where the mouse is: use mouse_move first.')
      return canonical({ action: 'drag', path: [pointer, named] }, scene)
    case 'key':
      if (said.keys == null || said.keys.length === 0) return needs('keys')
      return canonical({ action: 'key', keys: joinKeys(said.keys), repeat: 1 }, scene)
    case 'type':
      return said.text == null ? needs('text') : canonical({ action: 'type', text: said.text }, scene)
    case 'scroll': {
      if (said.pixels == null) return needs('pixels')
      const middle = { x: Math.floor(screen.width / 2), y: Math.floor(screen.height / 2) }
      return canonical({ action: 'scroll', ...(point ?? middle), dx: 0, dy: -said.pixels }, scene)
    }
    case 'wait':
      return said.time == null ? needs('time') : canonical({ action: 'wait', seconds: said.time }, scene)
    case 'answer':
      return said.text == null ? needs('text') : canonical({ action: 'answer', text: said.text }, scene)
    case 'terminate':
      if (said.status == null) return needs('status, success or failure')
      return canonical(
        said.status === 'success' ? { action: 'done' } : { action: 'fail', reason: said.text ?? '' },
        scene,
      )
  }
  const known = [...Object.keys(clicks), ...others].join(', ')
  return told(`The action ${JSON.stringify(said.action.slice(0, 40))} is not offered. Use one of ${known}.`)
}

function writeInput(action: SingleAction, { screen, pointer }: Scene): unknown {
  const pair = ({ x, y }: Point): [number, number] => [
    Math.round((x * span) / screen.width),
    Math.round((y * span) / screen.height),
  ]
  switch (action.action) {
    case 'click':
    case 'right_click':
    case 'middle_click':
    case 'double_click':
    case 'triple_click': {
      if (action.keys !== undefined) return null
      return { action: clickNames.find(([, name]) => name === action.action)?.[0], coordinate: pair(action) }
    }
    case 'move':
      return { action: 'mouse_move', coordinate: pair(action) }
    case 'drag': {
      const [from, to, third] = action.path
      const here = from !== undefined && from.x === pointer?.x && from.y === pointer.y
      if (!here || to === undefined || third !== undefined || action.keys !== undefined) return null
      return { action: 'left_click_drag', coordinate: pair(to) }
    }
    case 'key':
      return action.repeat === 1 ? { action: 'key', keys: splitKeys(action.keys) } : null
    case 'type':
      return { action: 'type', text: action.text }
    case 'scroll':
      return action.dx === 0 && action.keys === undefined
        ? { action: 'scroll', coordinate: pair(action), pixels: -action.dy }
        : null
    case 'wait':
      return { action: 'wait', time: action.seconds }
    case 'answer':
      return { action: 'answer', text: action.text }
    case 'done':
      return { action: 'terminate', status: 'success' }
    case 'fail':
      return { action: 'terminate', status: 'failure', ...(action.reason === '' ? {} : { text: action.reason }) }
    case 'hold':
    case 'screenshot':
    case 'zoom':
      return null
  }
}
