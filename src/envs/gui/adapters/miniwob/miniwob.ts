import { z } from 'zod'
import type { ParsedAction, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, notch, type Scene, told } from '../contract.ts'
import { pixelsOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { canonical, fitting, surplusOf, type Takes } from '../read.ts'

const input = z.looseObject({
  action_type: z.string(),
  coords: z.tuple([z.number(), z.number()]).optional(),
  text: z.string().optional(),
  key: z.string().optional(),
})
type Input = z.infer<typeof input>

const clicks = { CLICK_COORDS: 'click', DBLCLICK_COORDS: 'double_click', MOVE_COORDS: 'move' } as const
const clickNames = Object.entries(clicks)
/** What each action takes. */
const takes: Takes = {
  NONE: [],
  MOVE_COORDS: ['coords'],
  CLICK_COORDS: ['coords'],
  DBLCLICK_COORDS: ['coords'],
  SCROLL_UP_COORDS: ['coords'],
  SCROLL_DOWN_COORDS: ['coords'],
  TYPE_TEXT: ['text'],
  PRESS_KEY: ['key'],
}
const offered = Object.keys(takes).join(', ')

/** Prefixes of a key in MiniWoB++, as `C-a` (`miniwob/action.py`, keys as Selenium names them in angle brackets). */
const prefixes: Readonly<Record<string, string>> = { C: 'ctrl', S: 'shift', A: 'alt', M: 'meta' }

/**
 * Actions of MiniWoB++ by coordinates (Farama-Foundation/miniwob-plusplus `miniwob/action.py`, `ActionTypes`):
 * `{"action_type": "CLICK_COORDS", "coords": [x, y]}`. Pixels of the page. Actions by element or field belong to that
 * system's own view of the page.
 */
export const miniwobAdapter: ActionAdapter = {
  name: 'miniwob',
  picture: (screen) => screen,
  places: pixelsOf,
  read(said, scene) {
    const parsed = fitting(input, said)
    return parsed.ok ? readOne(parsed.value, scene) : told(`The action does not fit: ${parsed.error}.`)
  },
  write: (action) => (action.action === 'batch' ? null : writeOne(action)),
}

function readOne({ action_type: type, ...given }: Input, scene: Scene): ParsedAction {
  const { coords, text, key } = given
  const needs = (what: string) => told(`${type} needs ${what}.`)
  const point = coords === undefined ? null : { x: coords[0], y: coords[1] }
  const surplus = surplusOf(takes, type, given)
  if (surplus !== null) return told(surplus)
  const click = clickNames.find(([name]) => name === type)?.[1]
  if (click !== undefined) return point === null ? needs('coords') : canonical({ action: click, ...point }, scene)
  switch (type) {
    case 'NONE':
      return canonical({ action: 'wait', seconds: 0 }, scene)
    case 'SCROLL_UP_COORDS':
      return point === null ? needs('coords') : canonical({ action: 'scroll', ...point, dx: 0, dy: -notch }, scene)
    case 'SCROLL_DOWN_COORDS':
      return point === null ? needs('coords') : canonical({ action: 'scroll', ...point, dx: 0, dy: notch }, scene)
    case 'TYPE_TEXT':
      return text === undefined ? needs('text') : canonical({ action: 'type', text }, scene)
    case 'PRESS_KEY': {
      const keys = key === undefined ? null : keyOf(key)
      return keys === null ? needs('key, as "<Enter>" or "C-a"') : canonical({ action: 'key', keys, repeat: 1 }, scene)
    }
  }
  if (/_(ELEMENT|FIELD)$/.test(type)) return told(`${type} is not offered: use coordinates, one of ${offered}.`)
  return told(`There is no action ${JSON.stringify(type.slice(0, 40))}. Use one of ${offered}.`)
}

function keyOf(text: string): string | null {
  const [, held = '', last = ''] = /^((?:[CSAM]-)*)(<\w+>|.)$/s.exec(text) ?? []
  if (last === '') return null
  const names = held.split('-').flatMap((prefix) => prefixes[prefix] ?? [])
  return joinKeys([...names, last.length === 1 ? last : last.slice(1, -1)])
}

function writeOne(action: SingleAction): unknown {
  if ('keys' in action && action.keys !== undefined && action.action !== 'key') return null
  switch (action.action) {
    case 'click':
    case 'double_click':
    case 'move':
      return { action_type: clickNames.find(([, name]) => name === action.action)?.[0], coords: [action.x, action.y] }
    case 'scroll': {
      if (action.dx !== 0 || Math.abs(action.dy) !== notch) return null
      return { action_type: action.dy < 0 ? 'SCROLL_UP_COORDS' : 'SCROLL_DOWN_COORDS', coords: [action.x, action.y] }
    }
    case 'type':
      return { action_type: 'TYPE_TEXT', text: action.text }
    case 'key': {
      const names = splitKeys(action.keys)
      const last = names.pop() ?? ''
      const held = names.map((name) => Object.entries(prefixes).find(([, known]) => known === name)?.[0])
      if (action.repeat !== 1 || held.includes(undefined)) return null
      const named = last === 'plus' ? '+' : last.length === 1 ? last : `<${last}>`
      return { action_type: 'PRESS_KEY', key: `${held.map((prefix) => `${prefix}-`).join('')}${named}` }
    }
    case 'wait':
      return action.seconds === 0 ? { action_type: 'NONE' } : null
    case 'triple_click':
    case 'right_click':
    case 'middle_click':
    case 'drag':
    case 'hold':
    case 'screenshot':
    case 'zoom':
    case 'answer':
    case 'done':
    case 'fail':
      return null
  }
}
