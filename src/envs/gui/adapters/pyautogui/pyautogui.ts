import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from '../contract.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { type Call, type Literal, parseCalls, quoted } from '../python-calls.ts'
import { batched, canonical, writeAll } from '../read.ts'

const offered =
  'click, doubleClick, tripleClick, rightClick, middleClick, moveTo, dragTo, scroll, hscroll, write, press, hotkey'

/**
 * OSWorld's `pyautogui` actions: Python text, line by line, of which only calls with literal arguments are read; nothing is
 * executed. Also `time.sleep(n)` and the bare words `WAIT`, `DONE` and `FAIL`. Pixels; the wheel turns in notches, upwards
 * for positive numbers.
 */
export const pyautoguiAdapter: ActionAdapter = {
  name: 'osworld-pyautogui',
  picture: (screen) => screen,
  read(said, scene) {
    if (typeof said !== 'string') return told('pyautogui actions are text.')
    const text = codeIn(said).trim()
    if (text === 'WAIT') return canonical({ action: 'wait', seconds: 1 }, scene)
    if (text === 'DONE') return canonical({ action: 'done' }, scene)
    if (text === 'FAIL') return canonical({ action: 'fail', reason: '' }, scene)
    const parsed = parseCalls(text.replaceAll(/^\s*(?:import|from)\s[^\n;]*/gm, ''))
    if (!parsed.ok) return told(`Only calls of pyautogui with literal arguments are read: ${parsed.error}.`)
    if (parsed.calls.length === 0) return told(`There is no action. Use calls of pyautogui: ${offered}.`)
    let { pointer } = scene
    const actions: ParsedAction[] = []
    for (const call of parsed.calls) {
      const read = readCall(call, { ...scene, pointer })
      actions.push(read)
      if (read.ok) pointer = pointerAfter(read) ?? pointer
    }
    return batched(actions, scene)
  },
  write(action, scene) {
    let { pointer } = scene
    const lines = writeAll(action, (single) => {
      const line = writeCall(single, pointer)
      pointer = pointerAfter({ ok: true, action: single }) ?? pointer
      return line
    })
    if (lines === null || (lines.length > 1 && lines.some((line) => line === 'DONE' || line === 'FAIL'))) return null
    return lines.join('\n')
  },
}

/** The code of a fenced block, or the text itself. */
function codeIn(text: string): string {
  return /```(?:python)?\s*\n([\s\S]*?)```/.exec(text)?.[1] ?? text
}

function pointerAfter(read: ParsedAction): Point | null {
  if (!read.ok) return null
  const { action } = read
  if (action.action === 'drag') return action.path.at(-1) ?? null
  return 'x' in action && action.action !== 'zoom' ? { x: action.x, y: action.y } : null
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
  right: 'right_click',
  middle: 'middle_click',
}

function readCall(call: Call, scene: Scene): ParsedAction {
  const name = call.name.replace(/^pyautogui\./, '')
  const given = (at: number, key: string): Literal | undefined => call.keyword.get(key) ?? call.positional[at]
  const number = (at: number, key: string): number | null => {
    const value = given(at, key)
    return typeof value === 'number' ? value : null
  }
  const [x, y] = [number(0, 'x'), number(1, 'y')]
  const named: Point | null = x === null || y === null ? null : { x, y }
  const point = named ?? scene.pointer
  const needs = (what: string) => told(`${call.name} needs ${what}.`)
  const click = Object.entries(clicks).find(([known]) => known === name)?.[1]
  if (click !== undefined) {
    if (point === null) return needs('x and y')
    const button = given(4, 'button')
    const times = number(2, 'clicks') ?? 1
    const other = name === 'click' && typeof button === 'string' ? buttons[button] : undefined
    if (name === 'click' && button !== undefined && other === undefined)
      return needs("button='left', 'right' or 'middle'")
    const repeated = times === 2 ? 'double_click' : times === 3 ? 'triple_click' : 'click'
    return canonical(
      { action: other !== undefined && other !== 'click' ? other : name === 'click' ? repeated : click, ...point },
      scene,
    )
  }
  switch (name) {
    case 'moveTo':
      return named === null ? needs('x and y') : canonical({ action: 'move', ...named }, scene)
    case 'dragTo':
      if (named === null) return needs('x and y')
      if (scene.pointer === null) return told('dragTo begins where the mouse is: call moveTo first.')
      return canonical({ action: 'drag', path: [scene.pointer, named] }, scene)
    case 'scroll':
    case 'vscroll':
    case 'hscroll': {
      const turns = number(0, 'clicks')
      const [atX, atY] = [number(1, 'x'), number(2, 'y')]
      const { width, height } = scene.screen
      const here = scene.pointer ?? { x: Math.floor(width / 2), y: Math.floor(height / 2) }
      const at = atX === null || atY === null ? here : { x: atX, y: atY }
      if (turns === null) return needs('a number of clicks')
      const way = turns === 0 ? 0 : turns * notch
      const [dx, dy] = name === 'hscroll' ? [way, 0] : [0, way === 0 ? 0 : -way]
      return canonical({ action: 'scroll', ...at, dx, dy }, scene)
    }
    case 'write':
    case 'typewrite': {
      const text = given(0, 'message')
      if (typeof text === 'string') return canonical({ action: 'type', text }, scene)
      if (!Array.isArray(text)) return needs('a text in quotes')
      return batched(
        text.map((key) => pressed(key, 1, scene)),
        scene,
      )
    }
    case 'press': {
      const keys = given(0, 'keys')
      const times = number(1, 'presses') ?? 1
      return Array.isArray(keys)
        ? batched(
            keys.map((key) => pressed(key, times, scene)),
            scene,
          )
        : pressed(keys ?? null, times, scene)
    }
    case 'hotkey': {
      const names = call.positional.flat().filter((key) => typeof key === 'string')
      return names.length === 0 ? needs("keys, as hotkey('ctrl', 'c')") : pressed(joinKeys(names), 1, scene)
    }
    case 'time.sleep':
    case 'sleep': {
      const seconds = number(0, 'seconds') ?? number(0, 'secs')
      return seconds === null ? needs('seconds') : canonical({ action: 'wait', seconds }, scene)
    }
    case 'screenshot':
      return canonical({ action: 'screenshot' }, scene)
    case 'mouseDown':
    case 'mouseUp':
      return told(`${call.name} is not offered: use dragTo, which presses, moves and lets go.`)
    case 'keyDown':
    case 'keyUp':
      return told(`${call.name} is not offered: use hotkey, which presses keys together.`)
  }
  return told(`${call.name} is not offered. Use ${offered}, or time.sleep.`)
}

function pressed(key: Literal, repeat: number, scene: Scene): ParsedAction {
  if (typeof key !== 'string') return told("A key is a text in quotes, such as 'enter'.")
  return canonical({ action: 'key', keys: key.length === 1 ? joinKeys([key]) : key, repeat }, scene)
}

function writeCall(action: SingleAction, pointer: Point | null): string | null {
  if ('keys' in action && action.keys !== undefined && action.action !== 'key') return null
  switch (action.action) {
    case 'click':
      return `pyautogui.click(${action.x}, ${action.y})`
    case 'double_click':
      return `pyautogui.doubleClick(${action.x}, ${action.y})`
    case 'triple_click':
      return `pyautogui.tripleClick(${action.x}, ${action.y})`
    case 'right_click':
      return `pyautogui.rightClick(${action.x}, ${action.y})`
    case 'middle_click':
      return `pyautogui.middleClick(${action.x}, ${action.y})`
    case 'move':
      return `pyautogui.moveTo(${action.x}, ${action.y})`
    case 'drag': {
      const [from, to, third] = action.path
      const here = from !== undefined && from.x === pointer?.x && from.y === pointer.y
      return here && to !== undefined && third === undefined ? `pyautogui.dragTo(${to.x}, ${to.y})` : null
    }
    case 'scroll': {
      const { x, y, dx, dy } = action
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
