import { z } from 'zod'
import type { ParsedAction, Screen, SingleAction } from '../actions/index.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from './contract.ts'
import { type Coordinates, type Grid, gridOf } from './coordinates.ts'
import { joinKeys, splitKeys } from './keys.ts'
import { batched, canonical, fitting, inTurn, middleOf, surplusOf } from './read.ts'

/** A call as a model wrote it: a word, and its arguments by name. */
export interface WordCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

const number = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d+(?:\.\d+)?$/)
    .transform(Number),
])
const pair = z.tuple([z.number(), z.number()])

/** What arguments mean. `aside` is said to people and does nothing. */
const roles = z.object({
  at: pair,
  to: pair,
  x: z.number(),
  y: z.number(),
  x2: z.number(),
  y2: z.number(),
  text: z.string(),
  keys: z.string(),
  direction: z.enum(['up', 'down', 'left', 'right']),
  /** How far a scroll goes, in the schema's own unit. */
  amount: number,
  seconds: number,
  /** Whether a text is confirmed with Enter, and whether it takes the place of what the field holds. */
  enter: z.boolean(),
  clear: z.boolean(),
  aside: z.unknown(),
})
const given = roles.partial()
type Given = z.infer<typeof given>
type Role = keyof Given

/** A word of a schema. */
export interface Word {
  /** A canonical action; `fill` clicks a place, if one is named, and types there. */
  readonly does: Exclude<SingleAction['action'], 'hold' | 'zoom'> | 'fill'
  /** Its arguments, and what they mean. */
  readonly takes?: Readonly<Record<string, Role>>
  /** Arguments that may be left out. */
  readonly optional?: readonly string[]
  /** Its fixed meaning, and the defaults of its arguments. */
  readonly means?: Given
}

/** A schema as a table of its words, and how one call of them is written. */
export interface Vocabulary {
  readonly name: string
  readonly coordinates: Coordinates
  readonly words: Readonly<Record<string, Word>>
  /** Arguments of every word that do nothing. */
  readonly asides?: readonly string[]
  /** The calls in what a model said, or what is wrong with it. */
  readonly calls: (said: unknown) => readonly WordCall[] | string
  readonly write: (call: WordCall) => unknown
  /** A place in a text, its x and y as groups; how one is written. Left out: places are given as numbers. */
  readonly place?: { readonly pattern: RegExp; readonly write: (point: Point) => string }
  /** Pixels of one unit of `amount`. Default: a notch of the wheel. */
  readonly unit?: (side: number) => number
  /** Separates the keys of a combination. Default: a plus sign. */
  readonly between?: ' '
  /** Tells a model that answers in text how to write a call. Left out: its actions are no text. */
  readonly form?: string
}

/** The adapter of a schema that is declared as a table. */
export function adapterFrom(schema: Vocabulary): ActionAdapter {
  const { name, coordinates, words, form } = schema
  const grid = (screen: Screen): Grid => gridOf(coordinates, screen)
  return {
    name,
    picture: (screen) => grid(screen).picture,
    places: (screen) => grid(screen).words,
    ...(form === undefined
      ? {}
      : { spoken: (screen: Screen) => [opening, form, signatures(words), grid(screen).words].join('\n\n') }),
    read(said, scene) {
      const calls = schema.calls(said)
      if (typeof calls === 'string') return told(calls)
      return inTurn(calls, scene, (call, here) => readCall(call, here, schema))
    },
    write(action, { screen }) {
      if (action.action === 'batch') return null
      for (const [called, word] of Object.entries(words)) {
        const args = canSay(word, action) ? argumentsOf(word, action, screen, schema) : null
        if (args !== null) return schema.write({ name: called, args })
      }
      return null
    },
  }
}

const opening =
  'You use a computer to do what the user asks. You are shown its screen after each action. Say in a sentence what you do next, then write one action.'

function signatures(words: Vocabulary['words']): string {
  return Object.entries(words)
    .map(([name, { takes = {}, optional = [] }]) => {
      const names = Object.keys(takes).map((one) => (optional.includes(one) ? `${one}?` : one))
      return `${name}(${names.join(', ')})`
    })
    .join('\n')
}

function readCall({ name, args }: WordCall, scene: Scene, schema: Vocabulary): ParsedAction {
  const word = Object.hasOwn(schema.words, name) ? schema.words[name] : undefined
  if (word === undefined) {
    const offered = Object.keys(schema.words).join(', ')
    return told(`There is no action ${JSON.stringify(name.slice(0, 40))}. Use one of ${offered}.`)
  }
  const { takes = {}, optional = [], means = {} } = word
  const surplus = surplusOf({ [name]: [...Object.keys(takes), ...(schema.asides ?? [])] }, name, args)
  if (surplus !== null) return told(surplus)
  const said: Record<string, unknown> = { ...means }
  for (const [argument, role] of Object.entries(takes)) {
    const value = args[argument]
    if (value != null) said[role] = role === 'at' || role === 'to' ? placeIn(value, schema) : value
    else if (!optional.includes(argument)) return told(`The action ${name} needs ${argument}.`)
  }
  const parsed = fitting(given, said)
  if (!parsed.ok) return told(`The action ${name} does not fit: ${parsed.error}.`)
  return actionOf(word, name, parsed.value, scene, schema)
}

function placeIn(value: unknown, { place }: Vocabulary): unknown {
  if (typeof value !== 'string') return value
  const found = place?.pattern.exec(value)
  return found == null ? null : [Number(found[1]), Number(found[2])]
}

function actionOf(word: Word, name: string, said: Given, scene: Scene, schema: Vocabulary): ParsedAction {
  const grid = gridOf(schema.coordinates, scene.screen)
  const at = said.at ?? (said.x === undefined || said.y === undefined ? null : [said.x, said.y])
  const to = said.to ?? (said.x2 === undefined || said.y2 === undefined ? null : [said.x2, said.y2])
  const [here, there] = [at, to].map((one) => one && grid.toScreen({ x: one[0] ?? NaN, y: one[1] ?? NaN }))
  if (here?.ok === false) return told(here.error)
  if (there?.ok === false) return told(there.error)
  const named = here?.point ?? null
  const point = named ?? scene.pointer
  const { text = '', seconds = 1 } = said
  switch (word.does) {
    case 'click':
    case 'double_click':
    case 'triple_click':
    case 'right_click':
    case 'middle_click':
    case 'move':
      return point === null
        ? told(`The action ${name} needs a place.`)
        : canonical({ action: word.does, ...point }, scene)
    case 'drag':
      if (point === null || there === undefined || there === null) return told(`The action ${name} needs two places.`)
      return canonical({ action: 'drag', path: [point, there.point] }, scene)
    case 'scroll': {
      const across = said.direction === 'left' || said.direction === 'right'
      const side = across ? scene.screen.width : scene.screen.height
      const back = said.direction === 'up' || said.direction === 'left'
      const way = Math.round((said.amount ?? 1) * unitOf(schema, side)) * (back ? -1 : 1)
      const turn = across ? { dx: way, dy: 0 } : { dx: 0, dy: way }
      return canonical({ action: 'scroll', ...(point ?? middleOf(scene.screen)), ...turn }, scene)
    }
    case 'key': {
      const keys = (said.keys ?? '').trim()
      const joined = schema.between === ' ' ? joinKeys(keys.split(/\s+/)) : keys
      return canonical({ action: 'key', keys: joined, repeat: 1 }, scene)
    }
    case 'fill': {
      const steps: SingleAction[] = [
        ...(named === null ? [] : [{ action: 'click' as const, ...named }]),
        ...(said.clear === true ? ['ctrl+a', 'Delete'] : []).map(pressed),
        ...(text === '' ? [] : [{ action: 'type' as const, text }]),
        ...(said.enter === true ? [pressed('Enter')] : []),
      ]
      return batched(
        steps.map((step) => canonical(step, scene)),
        scene,
      )
    }
    case 'wait':
      return canonical({ action: 'wait', seconds }, scene)
    case 'answer':
      return canonical(text === '' ? { action: 'done' } : { action: 'answer', text }, scene)
    case 'type':
      return canonical({ action: 'type', text }, scene)
    case 'fail':
      return canonical({ action: 'fail', reason: text }, scene)
    case 'screenshot':
    case 'done':
      return canonical({ action: word.does }, scene)
  }
}

function pressed(keys: string): SingleAction {
  return { action: 'key', keys, repeat: 1 }
}

function unitOf({ unit }: Vocabulary, side: number): number {
  return unit === undefined ? notch : unit(side)
}

/** Whether a word may do an action: text is typed where the mouse is not named, and an empty answer ends an attempt. */
function canSay({ does }: Word, { action }: SingleAction): boolean {
  return does === action || (does === 'fill' && action === 'type') || (does === 'answer' && action === 'done')
}

/** The arguments with which a word says an action; null if it cannot say all of it. */
function argumentsOf(word: Word, action: SingleAction, screen: Screen, schema: Vocabulary): WordCall['args'] | null {
  const meant = meaningOf(action, screen, schema)
  const { takes = {}, optional = [], means = {} } = word
  if (meant === null) return null
  const args: Record<string, unknown> = {}
  for (const [argument, role] of Object.entries(takes)) {
    const value = meant.get(role)
    if (value !== undefined) args[argument] = value
    else if (!optional.includes(argument)) return null
  }
  const said = new Set<string>(Object.values(takes))
  // A place is said in one text or in two numbers.
  const isSaid = (role: Role): boolean =>
    said.has(role) || (role === 'at' && said.has('x')) || (role === 'to' && said.has('x2')) || /^[xy]2?$/.test(role)
  return [...meant].every(([role, value]) => isSaid(role) || means[role] === value) ? args : null
}

/** An action by roles; null if no table has a role for a part of it. */
function meaningOf(action: SingleAction, screen: Screen, schema: Vocabulary): ReadonlyMap<Role, unknown> | null {
  const grid = gridOf(schema.coordinates, screen)
  const at = (point: Point): readonly (readonly [Role, unknown])[] => {
    const { x, y } = grid.fromScreen(point)
    return [
      ['at', schema.place?.write({ x, y })],
      ['x', x],
      ['y', y],
    ]
  }
  if ('keys' in action && action.keys !== undefined && action.action !== 'key') return null
  switch (action.action) {
    case 'click':
    case 'double_click':
    case 'triple_click':
    case 'right_click':
    case 'middle_click':
    case 'move':
      return new Map(at(action))
    case 'drag': {
      const [from, to, third] = action.path
      if (from === undefined || to === undefined || third !== undefined) return null
      const end = grid.fromScreen(to)
      return new Map([...at(from), ['to', schema.place?.write(end)], ['x2', end.x], ['y2', end.y]])
    }
    case 'scroll': {
      const { dx, dy } = action
      const way = dx === 0 ? dy : dx
      const amount = Math.abs(way) / unitOf(schema, dx === 0 ? screen.height : screen.width)
      if ((dx !== 0 && dy !== 0) || !Number.isInteger(amount)) return null
      const direction = dx === 0 ? (dy < 0 ? 'up' : 'down') : dx < 0 ? 'left' : 'right'
      return new Map<Role, unknown>([...at(action), ['direction', direction], ['amount', amount]])
    }
    case 'key': {
      const names = splitKeys(action.keys)
      if (action.repeat !== 1 || (schema.between === ' ' && names.some((name) => name.includes(' ')))) return null
      return new Map([['keys', schema.between === ' ' ? names.join(' ') : action.keys]])
    }
    case 'type':
    case 'answer':
      return new Map([['text', action.text]])
    case 'fail':
      return new Map(action.reason === '' ? [] : [['text', action.reason]])
    case 'wait':
      return new Map([['seconds', action.seconds]])
    case 'done':
    case 'screenshot':
      return new Map()
    case 'hold':
    case 'zoom':
      return null
  }
}
