import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { CanonicalRequest, CanonicalTool } from '../translate/canonical.ts'
import { listAt, member, refused, shape, textAt } from '../translate/read.ts'
import { someOf } from '../translate/some-tools.ts'
import { clientTool } from './client-tools.ts'

/** How the client knows a tool that the engine knows as a function. */
export interface OfferedTool {
  readonly kind: 'function' | 'custom' | 'client'
  readonly name: string
  readonly namespace: string | null
}

export interface OfferedTools {
  readonly tools: readonly CanonicalTool[]
  /** By the name that the engine is told. */
  readonly offered: ReadonlyMap<string, OfferedTool>
}

/** The name of a tool inside a namespace, as the engine is told: chat tools have one flat space of names. */
export function flatName(name: string, namespace: string | undefined | null): string {
  if (namespace === undefined || namespace === null || namespace === '') return name
  return namespace.endsWith('_') ? `${namespace}${name}` : `${namespace}__${name}`
}

/**
 * The tools of a request. Functions go to the engine; freeform (`custom`) tools as functions of one string `input`;
 * namespaces are flattened; tools that the client runs (computers, shells, patches) go with the schema that OpenAI's models
 * know. Tools that OpenAI's servers would run (`web_search`, `code_interpreter`, `mcp`, …) are left
 * out, because Codex offers some of them always: the model is not told of them, so nothing can call them. Throws
 * `BODY_INVALID_SHAPE`.
 */
export function readTools(body: LosslessJson): OfferedTools {
  const tools: CanonicalTool[] = []
  const offered = new Map<string, OfferedTool>()
  const add = (tool: LosslessJson, field: string, namespace: string | null) => {
    const type = textAt(tool, 'type')
    if (type === 'namespace' && namespace === null) {
      const inner = textAt(tool, 'name')
      if (inner === undefined) throw shape(`${field}.name`, 'a string')
      for (const [index, one] of listAt(tool, 'tools').entries()) add(one, `${field}.tools.${index}`, inner)
      return
    }
    const own = clientTool(type)?.offered(tool) ?? null
    if (own !== null) {
      offered.set(own.name, { kind: 'client', name: own.name, namespace: null })
      tools.push(own)
      return
    }
    if (type !== 'function' && type !== 'custom') return
    const name = textAt(tool, 'name')
    if (name === undefined) throw shape(`${field}.name`, 'a string')
    offered.set(flatName(name, namespace), { kind: type, name, namespace })
    tools.push(
      type === 'function' ? functionTool(tool, flatName(name, namespace)) : customTool(tool, flatName(name, namespace)),
    )
  }
  for (const [index, tool] of listAt(body, 'tools').entries()) add(tool, `tools.${index}`, null)
  return { tools, offered }
}

function functionTool(tool: LosslessJson, name: string): CanonicalTool {
  const parameters = member(tool, 'parameters')
  return {
    name,
    description: textAt(tool, 'description') ?? null,
    parametersText: parameters === undefined ? null : stringifyLossless(parameters),
  }
}

const freeformParameters =
  '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'

function customTool(tool: LosslessJson, name: string): CanonicalTool {
  const format = member(tool, 'format')
  const grammar = textAt(format, 'definition')
  const syntax = textAt(format, 'syntax') ?? 'given'
  const parts = [textAt(tool, 'description'), grammar && `\`input\` follows this ${syntax} grammar:\n${grammar}`]
  const description = parts.filter((part) => part !== undefined && part !== '').join('\n\n')
  return { name, description: description === '' ? null : description, parametersText: freeformParameters }
}

/** Arguments of the function that stands for a freeform tool. */
export function freeformArguments(input: string): string {
  return `{"input":${JSON.stringify(input)}}`
}

/** What a freeform tool is called with: the one string, or what the model wrote where it is not that. */
export function freeformInput(argumentsText: string): string {
  try {
    const parsed: unknown = JSON.parse(argumentsText)
    if (typeof parsed === 'object' && parsed !== null && 'input' in parsed && typeof parsed.input === 'string') {
      return parsed.input
    }
  } catch {
    // Cut off or not JSON.
  }
  return argumentsText
}

/** Throws `BODY_INVALID_SHAPE` for a choice of a tool that is not offered to the engine. */
export function readToolChoice(body: LosslessJson, offered: OfferedTools['offered']): CanonicalRequest['toolChoice'] {
  const choice = member(body, 'tool_choice')
  if (choice === undefined) return null
  const word = choice.kind === 'string' ? choice.value : textAt(choice, 'mode')
  if (textAt(choice, 'type') === 'allowed_tools') {
    const names = listAt(choice, 'tools').map((one) => flatName(textAt(one, 'name') ?? textAt(one, 'type') ?? '', null))
    return someOf(names, { all: [...offered.keys()], demanded: word === 'required', field: 'tool_choice.tools' })
  }
  if (word === 'auto' || word === 'none' || word === 'required') return word
  const type = textAt(choice, 'type')
  if (type !== undefined && offered.get(type)?.kind === 'client') return { name: type }
  const name = flatName(textAt(choice, 'name') ?? '', textAt(choice, 'namespace'))
  if ((type === 'function' || type === 'custom') && offered.has(name)) return { name }
  throw refused(
    'tool_choice',
    `the tool ${name === '' ? (type ?? word ?? 'named') : name} is not offered`,
    'Name an offered function.',
  )
}
