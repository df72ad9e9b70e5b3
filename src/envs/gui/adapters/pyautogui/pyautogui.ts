import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from '../contract.ts'
import { type Coordinates, type Grid, gridOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { argumentsOf, type Call, type Literal, parseCalls, quoted } from '../python-calls.ts'
import { heldCalls, withHeld } from './held.ts'
import { batched, canonical, codeIn, inTurn, pointerAfter, writeAll } from '../read.ts'

const offered =
  'click, doubleClick, tripleClick, rightClick, middleClick, moveTo, dragTo, scroll, hscroll, write, press, hotkey'
const bareWords = ['WAIT', 'DONE', 'FAIL']

/**
 * OSWorld's `pyautogui` actions: Python text, line by line, of which only calls with literal arguments are read; nothing is
 * executed. Keys between `keyDown` and `keyUp` of one answer are held. Also `time.sleep(n)`, the bare words `WAIT`, `DONE` and `FAIL`, and OpenCUA's `computer.wait`,
 * `computer.triple_click` and `computer.terminate`. Pixels unless it is told otherwise: OpenCUA counts pixels of the picture
 * that its image processor makes, AgentNet and Aguvis fractions. The wheel turns in notches, upwards for positive numbers.
 */
export const pyautoguiAdapter = (coordinates: Coordinates = 'absolute'): ActionAdapter => ({
  name: 'osworld-pyautogui',
  picture: (screen) => gridOf(coordinates, screen).picture,
  places: (screen) => gridOf(coordinates, screen).words,
  spoken: (screen) => spoken(gridOf(coordinates, screen)),
  read(said, scene) {
    if (typeof said !== 'string') return told('pyautogui actions are text.')
    const parsed = parseCalls(codeIn(said), bareWords)
    if (!parsed.ok) return told(`Only calls of pyautogui with literal arguments are read: ${parsed.error}.`)
    if (parsed.calls.length === 0) return told(`There is no action. Use calls of pyautogui: ${offered}.`)
    const calls = heldCalls(parsed.calls)
    if (typeof calls === 'string') return told(calls)
    const grid = gridOf(coordinates, scene.screen)
    return inTurn(calls, scene, ({ call, held }, here) => withHeld(readCall(call, here, grid), held, here))
  },
  write(action, scene) {
    let { pointer } = scene
    const lines = writeAll(action, (single) => {
      const line = writeCall(single, pointer, gridOf(coordinates, scene.screen))
      pointer = pointerAfter({ ok: true, action: single }) ?? pointer
      return line
    })
    if (lines === null || (lines.length > 1 && lines.some((line) => line === 'DONE' || line === 'FAIL'))) return null
    return lines.join('\n')
  },
})

function spoken({ words }: Grid): string {
  return [
    'You use a computer to do what the user asks. You are shown its screen after each action. Think about what to do next, then write Python in a block ```python … ``` with calls of `pyautogui` and literal arguments: no variables, no other code.',
    `Calls: ${offered}, and time.sleep(seconds). The wheel of \`scroll\` turns in notches, up is positive.`,
    words,
    "In place of code you can write one word in the block: WAIT to look again, DONE when everything is done, FAIL when it cannot be done. Where something is asked, write computer.terminate(status='success', answer='…').",
  ].join('\n\n')
}

const clicks = {
  click: 'click',
  leftClick: 'click',
  doubleClick: 'double_click',
  tripleClick: 'triple_click',
  rightClick: 'right_click',
  middleClick: 'middle_click',
} as const
const buttons: Readonly<Record<string, 'click' | 'right_click' | 'middle_click'>> = {
  left: 'click',
  primary: 'click',
  right: 'right_click',
  secondary: 'right_click',
  middle: 'middle_click',
}

/** Parameters of a call, as pyautogui's functions have them (pyautogui/__init__.py of 0.9.54). */
const timed = ['duration', 'tween', 'logScreenshot', '_pause']
const signatures: Readonly<Record<string, readonly string[]>> = {
  click: ['x', 'y', 'clicks', 'interval', 'button', ...timed],
  leftClick: ['x', 'y', 'interval', ...timed],
  rightClick: ['x', 'y', 'interval', ...timed],
  middleClick: ['x', 'y', 'interval', ...timed],
  doubleClick: ['x', 'y', 'interval', 'button', ...timed],
  tripleClick: ['x', 'y', 'interval', 'button', ...timed],
  moveTo: ['x', 'y', ...timed],
  dragTo: ['x', 'y', 'duration', 'tween', 'button', 'logScreenshot', '_pause', 'mouseDownUp'],
  scroll: ['clicks', 'x', 'y', 'logScreenshot', '_pause'],
  vscroll: ['clicks', 'x', 'y', 'logScreenshot', '_pause'],
  hscroll: ['clicks', 'x', 'y', 'logScreenshot', '_pause'],
  write: ['message', 'interval', 'logScreenshot', '_pause'],
  typewrite: ['message', 'interval', 'logScreenshot', '_pause'],
  press: ['keys', 'presses', 'interval', 'logScreenshot', '_pause'],
  'time.sleep': ['seconds'],
  sleep: ['seconds'],
  screenshot: [],
  WAIT: [],
  DONE: [],
  FAIL: [],
  'computer.wait': ['seconds'],
  'computer.triple_click': ['x', 'y'],
  'computer.terminate': ['status', 'answer'],
}

function readCall(call: Call, scene: Scene, grid: Grid): ParsedAction {
  const name = call.name.replace(/^pyautogui\./, '')
  if (name === 'hotkey') return hotkey(call, scene)
  const signature = signatures[name]
  if (signature === undefined)
    return told(refusals[name] ?? `${call.name} is not offered. Use ${offered}, or time.sleep.`)
  const given = argumentsOf(renamed(call), signature)
  if (typeof given === 'string') return told(given)
  const needs = (what: string) => told(`${call.name} needs ${what}.`)
  const place = placeIn(given, grid)
  if (place !== null && 'error' in place) return told(`${call.name}: ${place.error}`)
  const point = place ?? scene.pointer
  const click = Object.entries(clicks).find(([known]) => known === name)?.[1]
  if (click !== undefined) {
    const button = buttons[String(given.get('button') ?? 'left').toLowerCase()]
    const times = given.get('clicks') ?? 1
    if (button === undefined) return needs("button='left', 'right' or 'middle'")
    if (times !== 1 && times !== 2 && times !== 3) return needs('clicks of 1, 2 or 3')
    if (button !== 'click' && (click !== 'click' || times > 1)) {
      return told(`${call.name} with the ${String(given.get('button'))} button can be done once only: use click.`)
    }
    if (point === null) return needs('x and y')
    const repeated = click === 'click' ? ([button, 'double_click', 'triple_click'] as const)[times - 1] : click
    return canonical({ action: repeated ?? click, ...point }, scene)
  }
  switch (name) {
    case 'moveTo':
      return place === null ? needs('x and y') : canonical({ action: 'move', ...place }, scene)
    case 'computer.triple_click':
      return place === null ? needs('x and y') : canonical({ action: 'triple_click', ...place }, scene)
    case 'dragTo':
      if (place === null) return needs('x and y')
      if (buttons[String(given.get('button') ?? 'left').toLowerCase()] !== 'click') return needs("button='left'")
      if ((given.get('mouseDownUp') ?? true) !== true) return needs('mouseDownUp=True')
      if (scene.pointer === null) return told('dragTo begins where the mouse is: call moveTo first.')
      return canonical({ action: 'drag', path: [scene.pointer, place] }, scene)
    case 'scroll':
    case 'vscroll':
    case 'hscroll': {
      const turns = given.get('clicks')
      const { width, height } = scene.screen
      const at = point ?? { x: Math.floor(width / 2), y: Math.floor(height / 2) }
      if (typeof turns !== 'number') return needs('a number of clicks')
      const way = turns === 0 ? 0 : turns * notch
      const [dx, dy] = name === 'hscroll' ? [way, 0] : [0, way === 0 ? 0 : -way]
      return canonical({ action: 'scroll', ...at, dx, dy }, scene)
    }
    case 'write':
    case 'typewrite': {
      const text = given.get('message')
      if (typeof text === 'string') return canonical({ action: 'type', text }, scene)
      if (!Array.isArray(text)) return needs('a text in quotes')
      return batched(
        text.map((key) => pressed(key, 1, scene)),
        scene,
      )
    }
    case 'press': {
      const keys = given.get('keys') ?? null
      const times = given.get('presses') ?? 1
      if (typeof times !== 'number' || !Number.isInteger(times) || times < 1) return needs('presses from 1 on')
      return Array.isArray(keys)
        ? batched(
            Array.from({ length: Math.min(times, 100) }, () => keys.map((key) => pressed(key, 1, scene))).flat(),
            scene,
          )
        : pressed(keys, times, scene)
    }
    case 'time.sleep':
    case 'sleep':
    case 'computer.wait': {
      const seconds = given.get('seconds') ?? (name === 'computer.wait' ? 3 : null)
      return typeof seconds === 'number' ? canonical({ action: 'wait', seconds }, scene) : needs('seconds')
    }
    case 'screenshot':
      return canonical({ action: 'screenshot' }, scene)
    case 'WAIT':
      return canonical({ action: 'wait', seconds: 1 }, scene)
    case 'DONE':
      return canonical({ action: 'done' }, scene)
    case 'FAIL':
      return canonical({ action: 'fail', reason: '' }, scene)
    case 'computer.terminate': {
      const answer = given.get('answer') ?? ''
      if (typeof answer !== 'string') return needs('an answer in quotes')
      if (given.get('status') === 'failure') return canonical({ action: 'fail', reason: answer }, scene)
      if (given.get('status') !== 'success') return needs("status='success' or 'failure'")
      return canonical(answer === '' ? { action: 'done' } : { action: 'answer', text: answer }, scene)
    }
  }
  return told(`${call.name} is not offered. Use ${offered}, or time.sleep.`)
}

const refusals: Readonly<Record<string, string>> = {
  mouseDown: 'mouseDown is not offered: use dragTo, which presses, moves and lets go.',
  mouseUp: 'mouseUp is not offered: use dragTo, which presses, moves and lets go.',
}

/** `time.sleep(secs=1)`, and a point in one argument, as pyautogui takes it: `click((10, 20))`. */
function renamed(call: Call): Call {
  const [first, ...rest] = call.positional
  const keyword = new Map(
    [...call.keyword].map(([name, value]) => [name === 'secs' ? 'seconds' : name, value] as const),
  )
  const named = keyword.get('x')
  if (Array.isArray(named) && named.length === 2 && !keyword.has('y')) {
    return { ...call, keyword: keyword.set('x', named[0] ?? null).set('y', named[1] ?? null) }
  }
  const isPair = Array.isArray(first) && first.length === 2 && first.every((part) => typeof part === 'number')
  return { ...call, positional: isPair ? [...first, ...rest] : call.positional, keyword }
}

/** Where a call points to; null: nowhere. */
function placeIn(given: ReadonlyMap<string, Literal>, grid: Grid): Point | { readonly error: string } | null {
  const [x, y] = [given.get('x') ?? null, given.get('y') ?? null]
  if (x === null && y === null) return null
  if (typeof x !== 'number' || typeof y !== 'number') return { error: 'x and y are two numbers.' }
  const meant = grid.toScreen({ x, y })
  return meant.ok ? meant.point : { error: meant.error }
}

/** `hotkey('ctrl', 'c')`, also with its keys as one list. */
function hotkey({ positional, keyword }: Call, scene: Scene): ParsedAction {
  const keys = keyword.get('keys') ?? null
  const stranger = [...keyword.keys()].find((name) => !['keys', 'interval', 'logScreenshot', '_pause'].includes(name))
  const names = [...positional.flat(), ...(keys === null ? [] : [keys].flat())]
  if (stranger !== undefined || names.length === 0 || !names.every((key) => typeof key === 'string')) {
    return told("hotkey needs keys, as hotkey('ctrl', 'c').")
  }
  return pressed(joinKeys(names), 1, scene)
}

function pressed(key: Literal, repeat: number, scene: Scene): ParsedAction {
  if (typeof key !== 'string') return told("A key is a text in quotes, such as 'enter'.")
  return canonical({ action: 'key', keys: key.length === 1 ? joinKeys([key]) : key, repeat }, scene)
}

function writeCall(action: SingleAction, pointer: Point | null, grid: Grid): string | null {
  const { x, y } = 'x' in action ? grid.fromScreen(action) : { x: 0, y: 0 }
  if ('keys' in action && action.keys !== undefined && action.action !== 'key') return null
  switch (action.action) {
    case 'click':
      return `pyautogui.click(${x}, ${y})`
    case 'double_click':
      return `pyautogui.doubleClick(${x}, ${y})`
    case 'triple_click':
      return `pyautogui.tripleClick(${x}, ${y})`
    case 'right_click':
      return `pyautogui.rightClick(${x}, ${y})`
    case 'middle_click':
      return `pyautogui.middleClick(${x}, ${y})`
    case 'move':
      return `pyautogui.moveTo(${x}, ${y})`
    case 'drag': {
      const [from, to, third] = action.path
      const here = from !== undefined && from.x === pointer?.x && from.y === pointer.y
      if (!here || to === undefined || third !== undefined) return null
      const end = grid.fromScreen(to)
      return `pyautogui.dragTo(${end.x}, ${end.y})`
    }
    case 'scroll': {
      const { dx, dy } = action
      if ((dx !== 0 && dy !== 0) || (dx + dy) % notch !== 0) return null
      return dx === 0
        ? `pyautogui.scroll(${dy === 0 ? 0 : -dy / notch}, x=${x}, y=${y})`
        : `pyautogui.hscroll(${dx / notch}, x=${x}, y=${y})`
    }
    case 'type':
      return `pyautogui.write(${quoted(action.text)})`
    case 'key': {
      const keys = splitKeys(action.keys)
      if (keys.length === 1) return `pyautogui.press(${quoted(action.keys)}, presses=${action.repeat})`
      return action.repeat === 1 ? `pyautogui.hotkey(${keys.map(quoted).join(', ')})` : null
    }
    case 'wait':
      return `time.sleep(${action.seconds})`
    case 'screenshot':
      return 'pyautogui.screenshot()'
    // Words of their own, not calls: they stand alone.
    case 'done':
      return 'DONE'
    case 'fail':
      return action.reason === '' ? 'FAIL' : null
    case 'hold':
    case 'zoom':
    case 'answer':
      return null
  }
}
