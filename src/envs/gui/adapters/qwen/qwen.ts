import { z } from 'zod'
import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { clickNames, clicks } from '../clicks.ts'
import { type ActionAdapter, type Point, type Scene, told } from '../contract.ts'
import { type Coordinates, type Grid, gridOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { canonical, fitting, inTurn, middleOf, spokenPart, surplusOf, type Takes } from '../read.ts'
import { xmlCall } from '../xml-calls.ts'

const input = z.strictObject({
  action: z.string(),
  keys: z.array(z.string()).nullish(),
  text: z.string().nullish(),
  coordinate: z.tuple([z.number(), z.number()]).nullish(),
  coordinate2: z.tuple([z.number(), z.number()]).nullish(),
  pixels: z.number().nullish(),
  time: z.number().nullish(),
  status: z.enum(['success', 'failure']).nullish(),
})
type Input = z.infer<typeof input>

/** How long a `wait` without a time is: as long as OSWorld's `WAIT`, which is what its `qwen3vl_agent.py` makes of every `wait`. */
const waitSeconds = 2

const callSchema = z.strictObject({ name: z.literal('computer_use').optional(), arguments: z.unknown() })

const takes: Takes = {
  ...Object.fromEntries(Object.keys(clicks).map((name) => [name, ['coordinate']])),
  mouse_move: ['coordinate'],
  left_click_drag: ['coordinate', 'coordinate2'],
  key: ['keys'],
  type: ['text'],
  scroll: ['coordinate', 'pixels'],
  hscroll: ['coordinate', 'pixels'],
  wait: ['time'],
  answer: ['text'],
  terminate: ['status', 'text'],
}
const offered = Object.keys(takes).join(', ')

/**
 * Qwen's `computer_use`, as tool arguments or as the text in which the model writes its calls
 * (`<tool_call>{"name": "computer_use", "arguments": {...}}</tool_call>`, one or several). Coordinates are thousandths of the
 * screen unless it is told otherwise: models are told of a screen of 1000x1000 and their answers are divided by 1000 (Qwen3-VL
 * cookbook `computer_use`), EvoCUA's `--coordinate_type relative` ends at 999; Qwen2.5-VL counts pixels of the picture that
 * its image processor makes. `pixels` is positive upwards, of `hscroll` to the right as pyautogui's; a drag goes from where the mouse is, or
 * from `coordinate` to `coordinate2` (GUI-Owl). Calls of Qwen3.5 are XML: `<function=computer_use><parameter=action>…`.
 */
export const qwenAdapter = (coordinates: Coordinates = 'relative1000'): ActionAdapter => ({
  name: 'qwen',
  picture: (screen) => gridOf(coordinates, screen).picture,
  places: (screen) => gridOf(coordinates, screen).words,
  spoken: (screen) => spoken(gridOf(coordinates, screen)),
  read(said, scene) {
    const calls = typeof said === 'string' ? callsIn(spokenPart(said)) : [said]
    if (calls === null) {
      return told(
        'No call was found. Write <tool_call>{"name": "computer_use", "arguments": {"action": ...}}</tool_call>.',
      )
    }
    return inTurn(calls, scene, (given, here) => {
      const parsed = fitting(input, given)
      if (!parsed.ok) return told(`The computer_use call does not fit: ${parsed.error}.`)
      return readInput(parsed.value, here, gridOf(coordinates, scene.screen))
    })
  },
  write: (action, scene) =>
    action.action === 'batch' ? null : writeInput(action, scene, gridOf(coordinates, scene.screen)),
})

function spoken({ words }: Grid): string {
  return [
    'You use a computer to do what the user asks. You are shown its screen after each action.',
    `Say in a sentence what you do next, then write one call:\n<tool_call>\n{"name": "computer_use", "arguments": {"action": …}}\n</tool_call>`,
    `"action" is one of ${offered}. With it go "coordinate": [x, y] (clicks, mouse_move, left_click_drag, scroll, hscroll), "keys": [names] (key), "text" (type, answer), "pixels" (scroll, up is positive; hscroll, right is positive), "time" in seconds (wait), "status": "success" or "failure" (terminate).`,
    words,
    'End with terminate, or with answer where something is asked.',
  ].join('\n\n')
}

/** The arguments of all calls in a text; null where there are none, or where one cannot be read or is of another tool. */
function callsIn(text: string): readonly unknown[] | null {
  const found = Array.from(text.matchAll(/<tool_call>\s*([\s\S]*?)\s*<\/tool_call>/g), ([, call = '']) => call)
  if (text.split('<tool_call>').length - 1 !== found.length) return null
  try {
    return (found.length === 0 ? [text] : found).map((call) => {
      if (call.startsWith('<function=')) return argumentsOf(call)
      const parsed: unknown = JSON.parse(call)
      return typeof parsed === 'object' && parsed !== null && 'arguments' in parsed
        ? callSchema.parse(parsed).arguments
        : parsed
    })
  } catch {
    return null
  }
}

/** The arguments of a call in XML: texts as they are, other values as JSON. Throws for what is not whole, and for another tool. */
function argumentsOf(written: string): Readonly<Record<string, unknown>> {
  const call = xmlCall(written)
  if (call?.name !== 'computer_use') throw new SyntaxError('no whole call')
  const texts = new Set(['action', 'text', 'status'])
  const given = Object.entries(call.args)
  return Object.fromEntries(given.map(([name, value]) => [name, texts.has(name) ? value : JSON.parse(String(value))]))
}

function readInput(said: Input, scene: Scene, grid: Grid): ParsedAction {
  const { screen, pointer } = scene
  const { coordinate } = said
  const meant = coordinate == null ? null : grid.toScreen({ x: coordinate[0], y: coordinate[1] })
  if (meant?.ok === false) return told(meant.error)
  const named: Point | null = meant === null ? null : meant.point
  const point = named ?? pointer
  const needs = (what: string) => told(`The action ${said.action} needs ${what}.`)
  const click = clickNames.find(([name]) => name === said.action)?.[1]
  const { action: _, ...given } = said
  const surplus = surplusOf(takes, said.action, given)
  if (surplus !== null) return told(surplus)
  if (click !== undefined) return point === null ? needs('coordinate') : canonical({ action: click, ...point }, scene)
  switch (said.action) {
    case 'mouse_move':
      return named === null ? needs('coordinate') : canonical({ action: 'move', ...named }, scene)
    case 'left_click_drag':
      if (named === null) return needs('coordinate')
      if (said.coordinate2 != null) {
        const to = grid.toScreen({ x: said.coordinate2[0], y: said.coordinate2[1] })
        return to.ok ? canonical({ action: 'drag', path: [named, to.point] }, scene) : told(to.error)
      }
      if (pointer === null) return told('A drag begins where the mouse is: use mouse_move first.')
      return canonical({ action: 'drag', path: [pointer, named] }, scene)
    case 'key':
      if (said.keys == null || said.keys.length === 0) return needs('keys')
      return canonical({ action: 'key', keys: joinKeys(said.keys), repeat: 1 }, scene)
    case 'type':
      return said.text == null ? needs('text') : canonical({ action: 'type', text: said.text }, scene)
    case 'scroll':
    case 'hscroll': {
      if (said.pixels == null) return needs('pixels')
      const way = said.action === 'scroll' ? { dx: 0, dy: -said.pixels } : { dx: said.pixels, dy: 0 }
      return canonical({ action: 'scroll', ...(point ?? middleOf(screen)), ...way }, scene)
    }
    case 'wait':
      return canonical({ action: 'wait', seconds: said.time ?? waitSeconds }, scene)
    case 'answer':
      return said.text == null ? needs('text') : canonical({ action: 'answer', text: said.text }, scene)
    case 'terminate':
      if (said.status == null) return needs('status, success or failure')
      return canonical(
        said.status === 'success' ? { action: 'done' } : { action: 'fail', reason: said.text ?? '' },
        scene,
      )
  }
  return told(`The action ${JSON.stringify(said.action.slice(0, 40))} is not offered. Use one of ${offered}.`)
}

function writeInput(action: SingleAction, { pointer }: Scene, grid: Grid): unknown {
  const pair = (point: Point): [number, number] => {
    const { x, y } = grid.fromScreen(point)
    return [x, y]
  }
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
      return action.keys === undefined ? wheelOf(action.dx, action.dy, pair(action)) : null
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

function wheelOf(dx: number, dy: number, coordinate: readonly [number, number]): unknown {
  if (dx !== 0 && dy !== 0) return null
  return dx === 0 ? { action: 'scroll', coordinate, pixels: -dy } : { action: 'hscroll', coordinate, pixels: dx }
}
