import { z } from 'zod'
import { keysOfCombination } from './keys.ts'

const coordinate = z.number('must be a number of pixels')
const at = { x: coordinate, y: coordinate }
const keys = z
  .string()
  .min(1)
  .max(100)
  .refine((text) => keysOfCombination(text) !== null, 'is no key: use names such as Enter, ctrl+a, shift+Tab, F5 or a')
/** Held down meanwhile. */
const held = { keys: keys.optional() }
const seconds = z.number().min(0).max(60)

const pointed = (name: 'click' | 'double_click' | 'triple_click' | 'right_click' | 'middle_click') =>
  z.strictObject({ action: z.literal(name), ...at, ...held })

const single = [
  pointed('click'),
  pointed('double_click'),
  pointed('triple_click'),
  pointed('right_click'),
  pointed('middle_click'),
  z.strictObject({ action: z.literal('move'), ...at }),
  z.strictObject({
    action: z.literal('drag'),
    path: z.array(z.strictObject(at)).min(2, 'needs at least two points').max(200),
    ...held,
  }),
  z.strictObject({
    action: z.literal('scroll'),
    ...at,
    /** Pixels; positive is right and down. */
    dx: z.number().min(-10_000).max(10_000).default(0),
    dy: z.number().min(-10_000).max(10_000).default(0),
    ...held,
  }),
  z.strictObject({ action: z.literal('type'), text: z.string().min(1).max(4000) }),
  z.strictObject({ action: z.literal('key'), keys, repeat: z.int().min(1).max(100).default(1) }),
  z.strictObject({ action: z.literal('hold'), keys, seconds }),
  z.strictObject({ action: z.literal('wait'), seconds: seconds.default(1) }),
  z.strictObject({ action: z.literal('screenshot') }),
  z.strictObject({ action: z.literal('zoom'), ...at, width: z.number().positive(), height: z.number().positive() }),
  z.strictObject({ action: z.literal('answer'), text: z.string().min(1).max(2000) }),
  z.strictObject({ action: z.literal('done') }),
  z.strictObject({ action: z.literal('fail'), reason: z.string().max(2000).default('') }),
] as const

/** One action that is no batch. */
export const singleActionSchema = z.discriminatedUnion('action', single)
export type SingleAction = z.infer<typeof singleActionSchema>

/**
 * The canonical actions, in pixels of the screen. Every schema that models are trained on is turned into these
 * (`adapters/`), and every driver (browser, desktop) does these.
 */
export const actionSchema = z.discriminatedUnion('action', [
  ...single,
  z.strictObject({ action: z.literal('batch'), actions: z.array(singleActionSchema).min(1).max(30) }),
])
export type Action = z.infer<typeof actionSchema>

/** Size of the screen that coordinates are on. */
export interface Screen {
  readonly width: number
  readonly height: number
}

/** What a text of a model came to: an action, or what to tell the model. */
export type ParsedAction =
  | { readonly ok: true; readonly action: Action }
  | { readonly ok: false; readonly error: string }

/** The names of all actions. */
export const actionNames: readonly Action['action'][] = actionSchema.options.map((option) => option.shape.action.value)

/**
 * Reads an action as it was asked for. What is no action, does not fit or lies outside of the screen gives a text that
 * says what was wrong and what would be right.
 */
export function parseAction(input: unknown, screen: Screen): ParsedAction {
  const name = z.object({ action: z.string() }).safeParse(input).data?.action
  if (name === undefined) return wrong(`An action needs "action", one of ${actionNames.join(', ')}.`)
  if (!actionNames.some((known) => known === name)) {
    return wrong(`There is no action ${JSON.stringify(name.slice(0, 40))}. Use one of ${actionNames.join(', ')}.`)
  }
  const parsed = actionSchema.safeParse(input)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const place = issue === undefined || issue.path.length === 0 ? '' : ` ${issue.path.join('.')}:`
    return wrong(`The action ${name} does not fit:${place} ${issue?.message ?? 'invalid'}. ${usage(name)}`)
  }
  const outside = outsideOf(parsed.data, screen)
  return outside === null ? { ok: true, action: parsed.data } : wrong(outside)
}

/** Says which point lies outside of the screen, or is a fraction of it where pixels are counted; null when all lie on it. */
export function outsideOf(action: Action, screen: Screen): string | null {
  for (const { x, y } of pointsOf(action)) {
    if (isFraction({ x, y })) {
      return `(${x}, ${y}) is no place of pixels. Coordinates are pixels of a picture of ${screen.width}x${screen.height}.`
    }
    if (x >= 0 && y >= 0 && x < screen.width && y < screen.height) continue
    return (
      `The point (${x}, ${y}) is outside of the screen. x must be from 0 to ${screen.width - 1}, ` +
      `y from 0 to ${screen.height - 1}.`
    )
  }
  return null
}

/** Between nothing and one: a fraction of the screen, where something else is counted. */
export function isFraction({ x, y }: { readonly x: number; readonly y: number }): boolean {
  return (x > 0 && x < 1) || (y > 0 && y < 1)
}

function pointsOf(action: Action): readonly { readonly x: number; readonly y: number }[] {
  switch (action.action) {
    case 'batch':
      return action.actions.flatMap(pointsOf)
    case 'drag':
      return action.path
    case 'zoom':
      return [action, { x: action.x + action.width - 1, y: action.y + action.height - 1 }]
    case 'type':
    case 'key':
    case 'hold':
    case 'wait':
    case 'screenshot':
    case 'answer':
    case 'done':
    case 'fail':
      return []
    default:
      return [action]
  }
}

function usage(name: string): string {
  const option = actionSchema.options.find((one) => one.shape.action.value === name)
  const members = Object.keys(option?.shape ?? {}).filter((member) => member !== 'action')
  return members.length === 0 ? `It takes nothing else.` : `It takes ${members.join(', ')}.`
}

function wrong(error: string): ParsedAction {
  return { ok: false, error }
}
