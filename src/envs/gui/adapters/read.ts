import type { z } from 'zod'
import { type Action, outsideOf, type ParsedAction, parseAction, type SingleAction } from '../actions/index.ts'
import { type Point, type Scene, told } from './contract.ts'

/** A canonical action as an adapter makes it, checked as every other is. */
export function canonical(action: Action | SingleAction, { screen }: Scene): ParsedAction {
  return parseAction(action, screen)
}

/** Several actions that came as one; one alone is itself. */
export function batched(parsed: readonly ParsedAction[], scene: Scene): ParsedAction {
  const [only] = parsed
  if (parsed.length === 1 && only !== undefined) return only
  const actions: SingleAction[] = []
  for (const [index, one] of parsed.entries()) {
    if (!one.ok) return told(`Action ${index + 1} of ${parsed.length}: ${one.error}`)
    if (one.action.action === 'batch') actions.push(...one.action.actions)
    else actions.push(one.action)
  }
  return canonical({ action: 'batch', actions }, scene)
}

/** Each action of a batch in a schema's words; null where one has none. */
export function writeAll(action: Action, write: (single: SingleAction) => unknown): unknown[] | null {
  const singles = action.action === 'batch' ? action.actions : [action]
  const written = singles.map(write)
  return written.includes(null) ? null : written
}

/** Reads arguments by a schema; says in one sentence what does not fit. */
export function fitting<T>(schema: z.ZodType<T>, said: unknown): { ok: true; value: T } | { ok: false; error: string } {
  const parsed = schema.safeParse(said)
  if (parsed.success) return { ok: true, value: parsed.data }
  const [issue] = parsed.error.issues
  const place = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `
  return { ok: false, error: `${place}${issue?.message ?? 'invalid'}` }
}

/** What each action of a schema takes. */
export type Takes = Readonly<Record<string, readonly string[]>>

/**
 * Says which argument an action does not take; null where it takes them all, and for an action that is not offered. What
 * nobody reads would be something else done than what was said.
 */
export function surplusOf(takes: Takes, action: string, given: object): string | null {
  const taken = Object.hasOwn(takes, action) ? takes[action] : undefined
  const [name] = Object.entries(given).find(([key, value]) => value != null && taken?.includes(key) === false) ?? []
  if (taken === undefined || name === undefined) return null
  return `The action ${action} takes ${taken.length === 0 ? 'no arguments' : taken.join(', ')}, and no ${name}.`
}

/** A point on another picture of the screen, on the screen; rounded, and never beside its last pixel. */
export function scaled(value: number, from: number, to: number): number {
  return Math.min(to - 1, Math.max(0, Math.round((value * to) / from)))
}

/** Where a wheel turns without a place: the middle of the screen. */
export function middleOf({ width, height }: Scene['screen']): Point {
  return { x: Math.floor(width / 2), y: Math.floor(height / 2) }
}

/** Where an action leaves the mouse; null where it does not move it. */
export function pointerAfter(read: ParsedAction): Point | null {
  if (!read.ok) return null
  const { action } = read
  if (action.action === 'drag') return action.path.at(-1) ?? null
  return 'x' in action && action.action !== 'zoom' ? { x: action.x, y: action.y } : null
}

/** Reads actions one after the other, each from where the one before has left the mouse. */
export function inTurn<T>(
  given: readonly T[],
  scene: Scene,
  read: (one: T, scene: Scene) => ParsedAction,
): ParsedAction {
  let { pointer } = scene
  const parsed = given.map((one) => {
    const action = read(one, { ...scene, pointer })
    pointer = pointerAfter(action) ?? pointer
    return action
  })
  return batched(parsed, scene)
}

/** What a model said without what it thought before. */
export function spokenPart(text: string): string {
  return text.split('</think>').at(-1) ?? text
}

/** The code in all fenced blocks of a text, or the text itself where there are none. */
export function codeIn(text: string): string {
  const said = spokenPart(text)
  // A block that does not end may lack the half of what was meant: no reader takes its marks.
  if ((said.match(/```/g)?.length ?? 0) % 2 === 1) return said
  const blocks = Array.from(said.matchAll(/```(?:[a-z]+(?=\s))?([\s\S]*?)```/gi), ([, code = '']) => code)
  return blocks.length === 0 ? said : blocks.join('\n')
}

/** A point on a picture must lie on it, before it is scaled. */
export function outside(point: { readonly x: number; readonly y: number }, picture: Scene['screen']): string | null {
  return outsideOf({ action: 'move', ...point }, picture)
}
