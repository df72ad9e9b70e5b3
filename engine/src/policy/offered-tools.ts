import { scriptError } from '../errors.ts'
import { canonicalJson } from '../json/lossless.ts'
import { hasType, objectFor, propertiesOf } from './fill.ts'
import type { Json, JsonObject } from '../json/lossless.ts'
import type { AbstractCall } from './scripts.ts'

/** A call with the name and arguments that the offered tools ask for. */
export interface ConcreteCall {
  readonly name: string
  readonly args: JsonObject
}

interface OfferedTool {
  readonly name: string
  readonly schema: JsonObject | undefined
}

const SHELL_NAME = /shell|bash|exec|terminal|command|\brun\b/i
const COMMAND_KEYS = ['command', 'cmd'] as const
/** A list of whole command lines, as Cline's `run_commands` takes it. */
const COMMANDS_KEY = 'commands'

/** Name and parameter schema of each offered tool, in order. Tools without a name are left out. */
export function readTools(tools: readonly JsonObject[]): OfferedTool[] {
  return tools.flatMap((tool) => {
    const fn = tool.get('function')
    const source = fn instanceof Map ? fn : tool
    const name = source.get('name')
    const schema = source.get('parameters')
    return typeof name === 'string' ? [{ name, schema: schema instanceof Map ? schema : undefined }] : []
  })
}

/**
 * Turns a script's call into one that the offered tools accept. `shell` takes the first tool whose name speaks of a shell
 * and that has a string parameter `command` or `cmd` (or `command` as a list of strings, which gets `bash -lc`, or a list
 * `commands` of whole lines), else any tool with such a parameter. `tool` takes the tool of that name, else one that a harness offers under a prefix of its
 * own, as they do with MCP tools (`mcp__server__tool`; opencode: `server_tool`). Required parameters that the script does
 * not name are filled in.
 * Throws SCRIPT_NO_SHELL_TOOL when no offered tool takes a command.
 */
export function concreteCall(call: AbstractCall, tools: readonly OfferedTool[]): ConcreteCall {
  if (call.kind === 'tool') {
    const tool =
      tools.find((offered) => offered.name === call.name) ??
      tools.find((offered) => offered.name.endsWith(`__${call.name}`)) ??
      tools.find((offered) => offered.name.endsWith(`_${call.name}`))
    return { name: tool?.name ?? call.name, args: objectFor(tool?.schema, '', call.args) }
  }
  const takers = tools.flatMap((tool) => {
    const parameter = commandParameter(tool.schema)
    return parameter === undefined ? [] : [{ tool, ...parameter }]
  })
  const taker = takers.find((offered) => SHELL_NAME.test(offered.tool.name)) ?? takers[0]
  if (taker === undefined) {
    const names = tools.map((tool) => tool.name).join(', ') || 'none'
    throw scriptError(
      'SCRIPT_NO_SHELL_TOOL',
      `the script wants a shell, but no offered tool has a parameter "command", "cmd" or "commands" (offered: ${names})`,
    )
  }
  const value = taker.value(call.command)
  const purpose = `Run ${call.command.split('\n', 1)[0]?.slice(0, 60) ?? ''}`
  return { name: taker.tool.name, args: objectFor(taker.tool.schema, purpose, new Map([[taker.key, value]])) }
}

/** Where a tool takes a command line, and the value that it wants for one. */
interface CommandParameter {
  readonly key: string
  readonly value: (command: string) => Json
}

function commandParameter(schema: JsonObject | undefined): CommandParameter | undefined {
  const properties = propertiesOf(schema)
  for (const key of COMMAND_KEYS) {
    const property = properties.get(key)
    if (hasType(property, 'string')) return { key, value: (command) => command }
    if (isListOfText(property)) return { key, value: (command) => ['bash', '-lc', command] }
  }
  if (isListOfText(properties.get(COMMANDS_KEY))) return { key: COMMANDS_KEY, value: (command) => [command] }
  return undefined
}

function isListOfText(property: Json | undefined): boolean {
  return property instanceof Map && hasType(property, 'array') && hasType(property.get('items'), 'string')
}

/** Whether two calls do the same: same name, same arguments whatever their order or spacing. */
export function sameCall(a: ConcreteCall, b: ConcreteCall): boolean {
  return a.name === b.name && canonicalJson(a.args) === canonicalJson(b.args)
}
