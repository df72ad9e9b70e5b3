import { validationError } from '../../errors.ts'
import { canonicalJson, toJson } from '../../json/lossless.ts'
import { readObject, readText } from '../../json/read.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'
import type { ToolChoice } from '../../parsers/index.ts'
import type { Constraint } from '../../policy/policy.ts'

/** `tool_choice` with vLLM's defaults: `auto` where tools are offered, `none` where not. */
export function readToolChoice(body: JsonObject, tools: readonly Json[]): ToolChoice {
  const given = body.get('tool_choice') ?? (tools.length > 0 ? 'auto' : 'none')
  if (given === 'none') return { kind: 'none' }
  if (tools.length === 0) throw validationError('When using `tool_choice`, `tools` must be set.', 'tool_choice')
  if (given === 'auto' || given === 'required') return { kind: given }
  const fn = given instanceof Map ? readObject(given, 'function') : undefined
  const name = fn === undefined ? undefined : readText(fn, 'name')
  if (name === undefined) throw validationError('Invalid value for `tool_choice`', 'tool_choice')
  const offered = tools.some((tool) => tool instanceof Map && nameOfTool(tool) === name)
  if (!offered)
    throw validationError(
      'The tool specified in `tool_choice` does not match any of the specified `tools`',
      'tool_choice',
    )
  return { kind: 'named', name }
}

/** The answer form that a tool choice or response format leads to. */
export function constraintOf(body: JsonObject, choice: ToolChoice): Constraint {
  if (choice.kind === 'required') return { kind: 'required' }
  if (choice.kind === 'named') return { kind: 'named', name: choice.name }
  const format = readObject(body, 'response_format')
  const kind = format === undefined ? 'text' : readText(format, 'type')
  if (format === undefined || kind === 'text') return { kind: 'free' }
  const schema = kind === 'json_schema' ? readObject(format, 'json_schema')?.get('schema') : undefined
  return { kind: 'json', schema: schema ?? new Map([['type', 'object']]) }
}

/** The grammar vLLM compiles a forced tool choice to (`entrypoints/openai/tool_parsers/utils.py`). */
export function structuredOutputs(tools: readonly Json[], constraint: Constraint): Json {
  const offered = tools.flatMap((tool) => (tool instanceof Map ? [readObject(tool, 'function') ?? tool] : []))
  if (constraint.kind === 'json') return new Map([['json', constraint.schema]])
  if (constraint.kind === 'named') {
    const named = offered.find((fn) => fn.get('name') === constraint.name)
    return new Map([['json', named?.get('parameters') ?? new Map()]])
  }
  if (constraint.kind === 'free') return null
  const anyOf = offered.map((fn): Json => {
    const properties: JsonObject = new Map<string, Json>([
      ['name', toJson({ type: 'string', enum: [fn.get('name')] })],
      ['parameters', fn.get('parameters') ?? toJson({ type: 'object', properties: {} })],
    ])
    return new Map<string, Json>([
      ['properties', properties],
      ['required', ['name', 'parameters']],
    ])
  })
  const items: JsonObject = new Map<string, Json>([
    ['type', 'object'],
    ['anyOf', anyOf],
  ])
  const list = new Map<string, Json>([...Object.entries({ type: 'array' }), ['minItems', toJson(1)], ['items', items]])
  return new Map([['json', list]])
}

/** The reverse of `structuredOutputs`, for requests that bring ids instead of messages. */
export function constraintFromSchema(schema: Json, tools: readonly JsonObject[]): Constraint {
  if (!(schema instanceof Map)) return { kind: 'free' }
  const items = schema.get('items')
  if (schema.get('type') === 'array' && items instanceof Map && items.has('anyOf')) return { kind: 'required' }
  const wanted = canonicalJson(schema)
  const named = tools
    .map((tool) => readObject(tool, 'function') ?? tool)
    .find((fn) => canonicalJson(fn.get('parameters') ?? null) === wanted)
  const name = named?.get('name')
  return typeof name === 'string' ? { kind: 'named', name } : { kind: 'json', schema }
}

function nameOfTool(tool: JsonObject): string | undefined {
  const fn = readObject(tool, 'function')
  return fn === undefined ? undefined : readText(fn, 'name')
}
