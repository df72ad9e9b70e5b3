import { z } from 'zod'
import type { ParsedAction, Screen, SingleAction } from '../../actions/index.ts'
import { type ActionAdapter, type Scene, told } from '../contract.ts'
import { pixelsOf } from '../coordinates.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { batched, canonical, fitting, writeAll } from '../read.ts'

const at = { x: z.number(), y: z.number() }
/** A place of a drag; openai-agents-python hands it to computers as a pair. */
const place = z.union([z.strictObject(at), z.tuple([z.number(), z.number()]).transform(([x, y]) => ({ x, y }))])
const keys = z.array(z.string()).nullish()
const single = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('click'),
    button: z.enum(['left', 'right', 'wheel', 'back', 'forward']).default('left'),
    ...at,
    keys,
  }),
  z.strictObject({ type: z.literal('double_click'), ...at, keys }),
  z.strictObject({ type: z.literal('drag'), path: z.array(place), keys }),
  z.strictObject({ type: z.literal('keypress'), keys: z.array(z.string()).min(1) }),
  z.strictObject({ type: z.literal('move'), ...at, keys: z.array(z.string()).max(0, 'move holds no keys').nullish() }),
  z.strictObject({ type: z.literal('screenshot') }),
  z.strictObject({ type: z.literal('scroll'), ...at, scroll_x: z.number(), scroll_y: z.number(), keys }),
  z.strictObject({ type: z.literal('type'), text: z.string() }),
  z.strictObject({ type: z.literal('wait') }),
])
const batch = z.strictObject({ actions: z.array(single).min(1) })

/** Which canonical click a button makes. `back` and `forward` are keys of a browser. */
const clicks = { left: 'click', right: 'right_click', wheel: 'middle_click' } as const

/**
 * OpenAI's `computer_use_preview` (one action a call) and `computer` (`actions`, several a call): openai-node
 * `ResponseComputerToolCall`. Pixels of the display; `scroll_x` and `scroll_y` are pixels too.
 */
export const openaiAdapter: ActionAdapter = {
  name: 'openai',
  picture: (screen: Screen) => screen,
  places: pixelsOf,
  read(said, scene) {
    const many = typeof said === 'object' && said !== null && 'actions' in said
    const parsed = many ? fitting(batch, said) : fitting(single, said)
    if (!parsed.ok) return told(`The computer action does not fit: ${parsed.error}.`)
    const actions = 'actions' in parsed.value ? parsed.value.actions : [parsed.value]
    return batched(
      actions.map((action) => readOne(action, scene)),
      scene,
    )
  },
  write(action) {
    const written = writeAll(action, writeOne)
    return written === null ? null : action.action === 'batch' ? { actions: written } : written[0]
  },
}

function readOne(said: z.infer<typeof single>, scene: Scene): ParsedAction {
  const held = (names: readonly string[] | null | undefined) =>
    names === undefined || names === null || names.length === 0 ? {} : { keys: joinKeys(names) }
  switch (said.type) {
    case 'click': {
      const { x, y, button } = said
      if (button === 'back') return canonical({ action: 'key', keys: 'alt+Left', repeat: 1 }, scene)
      if (button === 'forward') return canonical({ action: 'key', keys: 'alt+Right', repeat: 1 }, scene)
      return canonical({ action: clicks[button], x, y, ...held(said.keys) }, scene)
    }
    case 'double_click':
      return canonical({ action: 'double_click', x: said.x, y: said.y, ...held(said.keys) }, scene)
    case 'drag':
      return canonical({ action: 'drag', path: said.path, ...held(said.keys) }, scene)
    case 'keypress':
      return canonical({ action: 'key', keys: joinKeys(said.keys), repeat: 1 }, scene)
    case 'move':
      return canonical({ action: 'move', x: said.x, y: said.y }, scene)
    case 'screenshot':
      return canonical({ action: 'screenshot' }, scene)
    case 'scroll': {
      const { x, y, scroll_x: dx, scroll_y: dy } = said
      return canonical({ action: 'scroll', x, y, dx, dy, ...held(said.keys) }, scene)
    }
    case 'type':
      return canonical({ action: 'type', text: said.text }, scene)
    case 'wait':
      return canonical({ action: 'wait', seconds: 1 }, scene)
  }
}

function writeOne(action: SingleAction): unknown {
  const held = 'keys' in action && action.keys !== undefined ? { keys: splitKeys(action.keys) } : {}
  switch (action.action) {
    case 'click':
      return { type: 'click', button: 'left', x: action.x, y: action.y, ...held }
    case 'right_click':
      return { type: 'click', button: 'right', x: action.x, y: action.y, ...held }
    case 'middle_click':
      return { type: 'click', button: 'wheel', x: action.x, y: action.y, ...held }
    case 'double_click':
      return { type: 'double_click', x: action.x, y: action.y, ...held }
    case 'drag':
      return { type: 'drag', path: action.path, ...held }
    case 'key':
      return action.repeat === 1 ? { type: 'keypress', keys: splitKeys(action.keys) } : null
    case 'move':
      return { type: 'move', x: action.x, y: action.y }
    case 'screenshot':
      return { type: 'screenshot' }
    case 'scroll':
      return { type: 'scroll', x: action.x, y: action.y, scroll_x: action.dx, scroll_y: action.dy, ...held }
    case 'type':
      return { type: 'type', text: action.text }
    case 'wait':
      return action.seconds === 1 ? { type: 'wait' } : null
    // The model ends with a message, and has no word for the rest.
    case 'triple_click':
    case 'hold':
    case 'zoom':
    case 'answer':
    case 'done':
    case 'fail':
      return null
  }
}
