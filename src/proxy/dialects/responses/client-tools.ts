import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { CanonicalTool } from '../translate/canonical.ts'
import { listAt, member, numberAt, textAt } from '../translate/read.ts'
import { toolErrorText } from '../translate/tool-error.ts'
import { computerActions, computerTool } from './computer.ts'

/**
 * A tool that OpenAI names and the client runs. Its schema is built into OpenAI's models, so requests carry none; another
 * model must be told. Shapes as in the types of the `openai` SDK 7.55; descriptions are ours.
 */
export interface ClientTool {
  /** Of the ids of its calls. */
  readonly prefix: 'cu' | 'sh' | 'lsh' | 'apc'
  /** Type of the item that is a call of it. */
  readonly callType: string
  /** The function that stands for it; null where OpenAI's servers would run it. */
  readonly offered: (tool: LosslessJson) => CanonicalTool | null
  /** What its call item has beside type, id and status; of empty arguments, which are still to come, what it has in any case. */
  readonly did: (argumentsText: string) => LooseObject
}

const text = (description: string) => ({ type: 'string', description })
const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description })
const milliseconds = { type: 'integer', description: 'How long it may take, in milliseconds.' }

function tool(name: string, description: string, properties: object, required: readonly string[]): CanonicalTool {
  return { name, description, parametersText: JSON.stringify({ type: 'object', properties, required }) }
}

const shell = tool(
  'shell',
  'Runs commands in a shell and gives their output.',
  {
    commands: texts('The commands, each a line for the shell.'),
    timeout_ms: milliseconds,
    max_output_length: { type: 'integer', description: 'How many characters of output to give, at most.' },
  },
  ['commands'],
)

const localShell = tool(
  'local_shell',
  'Runs a program and gives its output.',
  {
    command: texts('The program and its arguments.'),
    working_directory: text('Where it runs.'),
    env: { type: 'object', additionalProperties: { type: 'string' }, description: 'Variables that it gets.' },
    timeout_ms: milliseconds,
    user: text('Whom it runs as.'),
  },
  ['command'],
)

const applyPatch = tool(
  'apply_patch',
  'Creates, changes or deletes one file.',
  {
    type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'], description: 'What to do.' },
    path: text('The file.'),
    diff: text(
      'create_file: the content, each line behind a +. update_file: hunks, each behind a line that begins with @@, their lines behind a space, - or +.',
    ),
  },
  ['type', 'path'],
)

function computer(type: 'computer' | 'computer_use_preview'): ClientTool {
  return {
    prefix: 'cu',
    callType: 'computer_call',
    offered: (asked) => computerTool(type, asked),
    did: (argumentsText) => ({
      pending_safety_checks: [],
      ...(argumentsText === '' ? {} : computerActions(type, argumentsText)),
    }),
  }
}

const tools: ReadonlyMap<string, ClientTool> = new Map<string, ClientTool>([
  ['computer', computer('computer')],
  ['computer_use_preview', computer('computer_use_preview')],
  [
    'shell',
    {
      prefix: 'sh',
      callType: 'shell_call',
      offered: (asked) => {
        const place = textAt(member(asked, 'environment'), 'type')
        return place === undefined || place === 'local' ? shell : null
      },
      did: (argumentsText) => ({
        action: { commands: [], timeout_ms: null, max_output_length: null, ...membersOf(argumentsText) },
        environment: { type: 'local' },
      }),
    },
  ],
  [
    'local_shell',
    {
      prefix: 'lsh',
      callType: 'local_shell_call',
      offered: () => localShell,
      did: (argumentsText) => ({ action: { type: 'exec', command: [], env: {}, ...membersOf(argumentsText) } }),
    },
  ],
  [
    'apply_patch',
    {
      prefix: 'apc',
      callType: 'apply_patch_call',
      offered: () => applyPatch,
      did: (argumentsText) => ({ operation: membersOf(argumentsText) }),
    },
  ],
])

/** By the `type` of the tool in a request; null for one that the client does not run. */
export function clientTool(type: string | undefined): ClientTool | null {
  return tools.get(type ?? '') ?? null
}

/** The call that an item came from; null where the item has none of its members, or is no call of such a tool. */
export function clientCall(item: LosslessJson): { readonly name: string; readonly argumentsText: string } | null {
  switch (textAt(item, 'type')) {
    case 'shell_call':
      return called('shell', member(item, 'action'), new Set())
    case 'local_shell_call':
      return called('local_shell', member(item, 'action'), new Set(['type']))
    case 'apply_patch_call':
      return called('apply_patch', member(item, 'operation'), new Set())
    default:
      return null
  }
}

/** Without what an item has where the model said nothing. */
function called(name: string, given: LosslessJson | undefined, ours: ReadonlySet<string>) {
  if (given?.kind !== 'object') return null
  const invalid = textAt(given, 'invalid_arguments')
  const members = given.members.filter(({ key, value }) => !ours.has(key) && value.kind !== 'null' && !isEmpty(value))
  return { name, argumentsText: invalid ?? stringifyLossless({ kind: 'object', members }) }
}

function isEmpty(value: LosslessJson): boolean {
  return (value.kind === 'object' && value.members.length === 0) || (value.kind === 'array' && value.items.length === 0)
}

/** What the client says that came of a call: its id and the text for the model; null for any other item. */
export function clientOutput(
  item: LosslessJson,
): { readonly callId: string | undefined; readonly text: string } | null {
  const callId = textAt(item, 'call_id')
  const said = textAt(item, 'output') ?? ''
  switch (textAt(item, 'type')) {
    case 'shell_call_output':
      return { callId, text: listAt(item, 'output').map(ran).join('\n\n') }
    case 'local_shell_call_output':
      // The SDK's type has the id of the call as `id`.
      return { callId: callId ?? textAt(item, 'id'), text: said }
    case 'apply_patch_call_output':
      return { callId, text: textAt(item, 'status') === 'failed' ? toolErrorText(said) : said }
    default:
      return null
  }
}

function ran(output: LosslessJson): string {
  const outcome = member(output, 'outcome')
  const code = textAt(outcome, 'type') === 'timeout' ? null : numberAt(outcome, 'exit_code')
  const end = code === null ? 'It ran out of time.' : code === '0' ? '' : `Exit code: ${code}`
  return [textAt(output, 'stdout'), textAt(output, 'stderr'), end].filter(Boolean).join('\n')
}

function membersOf(argumentsText: string): LooseObject {
  if (argumentsText === '') return {}
  try {
    const parsed: unknown = JSON.parse(argumentsText)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return { ...parsed }
  } catch {
    // Cut off or not JSON.
  }
  return { invalid_arguments: argumentsText }
}
