import { z } from 'zod'
import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from '../contract.ts'
import { type Coordinates, type Grid, gridOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { canonical, fitting, surplusOf, type Takes } from '../read.ts'

const parameters = z.object({
  x: z.number().optional(),
  y: z.number().optional(),
  button: z.enum(['left', 'right', 'middle']).optional(),
  num_clicks: z.int().min(1).max(3).optional(),
  dx: z.number().optional(),
  dy: z.number().optional(),
  text: z.string().optional(),
  key: z.string().optional(),
  keys: z.array(z.string()).min(1).optional(),
})
const named = z.looseObject({ action_type: z.string(), parameters: z.unknown().optional() })

const place = ['x', 'y']
/** What each action takes (`ACTION_SPACE` there). */
const takes: Takes = {
  MOVE_TO: place,
  CLICK: [...place, 'button', 'num_clicks'],
  RIGHT_CLICK: [...place, 'button', 'num_clicks'],
  DOUBLE_CLICK: [...place, 'button', 'num_clicks'],
  DRAG_TO: place,
  SCROLL: ['dx', 'dy'],
  TYPING: ['text'],
  PRESS: ['key'],
  HOTKEY: ['keys'],
  WAIT: [],
  FAIL: [],
  DONE: [],
}
const offered = Object.keys(takes).join(', ')

/**
 * OSWorld's `computer_13` (`desktop_env/actions.py`): `{"action_type": "CLICK", "parameters": {...}}`, the parameters also
 * beside the type, and the bare words `WAIT`, `FAIL` and `DONE`. Pixels; the wheel turns in notches, upwards and to the
 * right for positive numbers, as `pyautogui` does it; clicks without a place happen where the mouse is.
 */
export const computer13Adapter = (coordinates: Coordinates = 'absolute'): ActionAdapter => ({
  name: 'osworld-computer-13',
  picture: (screen) => gridOf(coordinates, screen).picture,
  places: (screen) => gridOf(coordinates, screen).words,
  read(said, scene) {
    const given = fitting(named, typeof said === 'string' ? { action_type: said } : said)
    if (!given.ok) return told(`An action needs "action_type", one of ${offered}.`)
    const { action_type: type, parameters: inside, ...beside } = given.value
    const whole = typeof inside === 'object' && inside !== null ? { ...beside, ...inside } : beside
    const surplus = surplusOf(takes, type, whole)
    if (surplus !== null) return told(surplus)
    const parsed = fitting(parameters, whole)
    if (!parsed.ok) return told(`The action ${type} does not fit: ${parsed.error}.`)
    return readOne(type, parsed.value, scene, gridOf(coordinates, scene.screen))
  },
  write: (action, scene) =>
    action.action === 'batch' ? null : writeOne(action, scene, gridOf(coordinates, scene.screen)),
})

function readOne(type: string, given: z.infer<typeof parameters>, scene: Scene, grid: Grid): ParsedAction {
  const { x, y } = given
  const needs = (what: string) => told(`${type} needs ${what}.`)
  if ((x === undefined) !== (y === undefined)) return needs('both x and y')
  const meant = x === undefined || y === undefined ? null : grid.toScreen({ x, y })
  if (meant?.ok === false) return told(meant.error)
  const named = meant?.point ?? null
  const place: Point | null = named ?? scene.pointer
  const click = (button: 'left' | 'right' | 'middle', times: number): ParsedAction => {
    if (place === null) return needs('x and y')
    if (button === 'left') {
      const names = ['click', 'double_click', 'triple_click'] as const
      return canonical({ action: names[times - 1] ?? 'click', ...place }, scene)
    }
    if (times > 1) return told(`${type} with the ${button} button can be done once only.`)
    return canonical({ action: button === 'right' ? 'right_click' : 'middle_click', ...place }, scene)
  }
  switch (type) {
    case 'MOVE_TO':
      return named === null ? needs('x and y') : canonical({ action: 'move', ...named }, scene)
    case 'CLICK':
      return click(given.button ?? 'left', given.num_clicks ?? 1)
    case 'RIGHT_CLICK':
      return given.button === undefined || given.button === 'right'
        ? click('right', given.num_clicks ?? 1)
        : needs('no other button')
    case 'DOUBLE_CLICK':
      return click(given.button ?? 'left', given.num_clicks ?? 2)
    case 'DRAG_TO':
      if (named === null) return needs('x and y')
      if (scene.pointer === null) return told('DRAG_TO begins where the mouse is: use MOVE_TO first.')
      return canonical({ action: 'drag', path: [scene.pointer, named] }, scene)
    case 'SCROLL': {
      const { width, height } = scene.screen
      const at = scene.pointer ?? { x: Math.floor(width / 2), y: Math.floor(height / 2) }
      const { dx = 0, dy = 0 } = given
      return canonical({ action: 'scroll', ...at, dx: dx * notch, dy: dy === 0 ? 0 : -dy * notch }, scene)
    }
    case 'TYPING':
      return given.text === undefined ? needs('text') : canonical({ action: 'type', text: given.text }, scene)
    case 'PRESS':
      return given.key === undefined
        ? needs('key')
        : canonical({ action: 'key', keys: joinKeys([given.key]), repeat: 1 }, scene)
    case 'HOTKEY':
      return given.keys === undefined
        ? needs('keys')
        : canonical({ action: 'key', keys: joinKeys(given.keys), repeat: 1 }, scene)
    case 'WAIT':
      return canonical({ action: 'wait', seconds: 1 }, scene)
    case 'DONE':
      return canonical({ action: 'done' }, scene)
    case 'FAIL':
      return canonical({ action: 'fail', reason: '' }, scene)
    case 'MOUSE_DOWN':
    case 'MOUSE_UP':
      return told(`${type} is not offered: use DRAG_TO, which presses, moves and lets go.`)
    case 'KEY_DOWN':
    case 'KEY_UP':
      return told(`${type} is not offered: use HOTKEY, which presses keys together.`)
  }
  return told(`There is no action ${JSON.stringify(type.slice(0, 40))}. Use one of ${offered}.`)
}

function writeOne(action: SingleAction, { pointer }: Scene, grid: Grid): unknown {
  const made = (action_type: string, given: object = {}) => ({ action_type, parameters: given })
  const bare = 'keys' in action && action.keys !== undefined && action.action !== 'key' && action.action !== 'hold'
  if (bare) return null
  switch (action.action) {
    case 'click':
      return made('CLICK', { ...grid.fromScreen(action), button: 'left', num_clicks: 1 })
    case 'double_click':
      return made('DOUBLE_CLICK', grid.fromScreen(action))
    case 'triple_click':
      return made('CLICK', { ...grid.fromScreen(action), button: 'left', num_clicks: 3 })
    case 'right_click':
      return made('RIGHT_CLICK', grid.fromScreen(action))
    case 'middle_click':
      return made('CLICK', { ...grid.fromScreen(action), button: 'middle', num_clicks: 1 })
    case 'move':
      return made('MOVE_TO', grid.fromScreen(action))
    case 'drag': {
      const [from, to, third] = action.path
      const here = from !== undefined && from.x === pointer?.x && from.y === pointer.y
      return here && to !== undefined && third === undefined ? made('DRAG_TO', grid.fromScreen(to)) : null
    }
    case 'scroll': {
      const here = action.x === pointer?.x && action.y === pointer.y
      if (!here || action.dx % notch !== 0 || action.dy % notch !== 0) return null
      return made('SCROLL', { dx: action.dx / notch, dy: action.dy === 0 ? 0 : -action.dy / notch })
    }
    case 'type':
      return made('TYPING', { text: action.text })
    case 'key': {
      const keys = splitKeys(action.keys)
      if (action.repeat !== 1) return null
      return keys.length === 1 ? made('PRESS', { key: keys[0] }) : made('HOTKEY', { keys })
    }
    case 'wait':
      return action.seconds === 1 ? made('WAIT') : null
    case 'done':
      return made('DONE')
    case 'fail':
      return action.reason === '' ? made('FAIL') : null
    case 'hold':
    case 'screenshot':
    case 'zoom':
    case 'answer':
      return null
  }
}
