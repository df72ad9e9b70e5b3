import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { CanonicalTool } from '../translate/canonical.ts'
import { member, numberAt, textAt } from '../translate/read.ts'

/**
 * OpenAI's computer tools, which the client runs. Their schemas are built into OpenAI's models, so requests carry none;
 * another model must be told. Actions as in the types of the `openai` SDK 7.55 (`ResponseComputerToolCall`,
 * `ComputerAction`); descriptions are ours. `computer_use_preview` does one action per call, `computer` a list of them.
 */
type ComputerType = 'computer' | 'computer_use_preview'

const integer = (description: string) => ({ type: 'integer', description })
const actions = ['click', 'double_click', 'drag', 'keypress', 'move', 'screenshot', 'scroll', 'type', 'wait']

const action = {
  type: 'object',
  properties: {
    type: { type: 'string', enum: actions, description: 'What to do.' },
    x: integer('click, double_click, move, scroll: pixels from the left.'),
    y: integer('click, double_click, move, scroll: pixels from the top.'),
    button: { type: 'string', enum: ['left', 'right', 'wheel', 'back', 'forward'], description: 'click: the button.' },
    path: {
      type: 'array',
      items: { type: 'object', properties: { x: integer('x'), y: integer('y') }, required: ['x', 'y'] },
      description: 'drag: the points from the first to the last.',
    },
    scroll_x: integer('scroll: pixels to the right.'),
    scroll_y: integer('scroll: pixels down.'),
    text: { type: 'string', description: 'type: the text.' },
    keys: {
      type: 'array',
      items: { type: 'string' },
      description: 'keypress: the keys, pressed together. Other actions: keys held meanwhile.',
    },
  },
  required: ['type'],
}

const batch = { type: 'object', properties: { actions: { type: 'array', items: action } }, required: ['actions'] }

/** The function that stands for a computer tool, under the name of its type. */
export function computerTool(type: ComputerType, tool: LosslessJson): CanonicalTool {
  const [width, height, environment] = [
    numberAt(tool, 'display_width'),
    numberAt(tool, 'display_height'),
    textAt(tool, 'environment'),
  ]
  const screen = width === null || height === null ? '' : ` The screen is ${width} by ${height} pixels.`
  const place = environment === undefined ? '' : ` It is ${environment}.`
  return {
    name: type,
    description: `Uses the screen, mouse and keyboard of a computer; a screenshot comes back.${screen}${place}`,
    parametersText: JSON.stringify(type === 'computer' ? batch : action),
  }
}

/** What a `computer_call` item does, as the model wrote it. */
export function computerActions(type: ComputerType, argumentsText: string): LooseObject {
  const args = objectOf(argumentsText) ?? { invalid_arguments: argumentsText }
  if (type === 'computer_use_preview') return { action: args }
  // A list stands alone in the item: what is none is one action, so that the client's own check tells the model.
  return { actions: Array.isArray(args['actions']) ? args['actions'] : [args] }
}

/** The call that a `computer_call` item came from; null where it has none of the members. */
export function computerCall(
  item: LosslessJson,
): { readonly name: ComputerType; readonly argumentsText: string } | null {
  const [one, many] = [member(item, 'action'), member(item, 'actions')]
  if (many !== undefined) return { name: 'computer', argumentsText: `{"actions":${stringifyLossless(many)}}` }
  if (one === undefined) return null
  const invalid = textAt(one, 'invalid_arguments')
  return { name: 'computer_use_preview', argumentsText: invalid ?? stringifyLossless(one) }
}

function objectOf(text: string): LooseObject | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : null
  } catch {
    // Cut off or not JSON.
    return null
  }
}
