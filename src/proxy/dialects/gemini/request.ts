import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { DialectMemory } from '../contract.ts'
import { type CanonicalRequest, type CanonicalTool, plainRequest } from '../translate/canonical.ts'
import { readEffort } from '../translate/effort.ts'
import { type JsonObject, listAt, member, refused, shape, textAt, textsOf } from '../translate/read.ts'
import { someOf } from '../translate/some-tools.ts'
import { ContentReader, fieldOf, instructionText } from './contents.ts'

/** A generateContent request, read. */
export interface GeminiRequest {
  readonly canonical: CanonicalRequest
  readonly handles: ContentReader['handles']
  /** The client wants to see thoughts. */
  readonly thoughts: boolean
}

/**
 * Reads a request of Google's Gemini API (`generateContent`, API reference v1beta). `safetySettings`, labels and tools
 * that Google's servers would run (`googleSearch`, `codeExecution`, `urlContext`) say nothing to an engine and are left
 * out; `computerUse`, which the client runs, is refused. Throws `BODY_INVALID_SHAPE`.
 */
export function readGeminiRequest(
  body: JsonObject,
  route: { readonly model: string; readonly streamed: boolean },
  memory: DialectMemory,
): GeminiRequest {
  if (fieldOf(body, 'cachedContent') !== undefined) {
    throw refused('cachedContent', 'cached contents are not served', 'Send the whole content.')
  }
  const reader = new ContentReader(memory)
  const system = instructionText(fieldOf(body, 'systemInstruction'))
  if (system !== '') reader.messages.push({ role: 'system', content: [{ type: 'text', text: system }] })
  const contents = listAt(body, 'contents')
  if (contents.length === 0) throw shape('contents', 'a list with at least one content')
  for (const [index, content] of contents.entries()) reader.read(content, `contents.${index}`)
  const config = fieldOf(body, 'generationConfig')
  const number = (name: string) => {
    const value = fieldOf(config, name)
    return value?.kind === 'number' ? value.text : null
  }
  const stop = fieldOf(config, 'stopSequences')
  const tools = listAt(body, 'tools').flatMap(functionsOf)
  return {
    handles: reader.handles,
    thoughts: flagOf(fieldOf(fieldOf(config, 'thinkingConfig'), 'includeThoughts')),
    canonical: {
      ...plainRequest,
      model: route.model,
      messages: reader.messages,
      tools,
      toolChoice: toolChoice(
        fieldOf(fieldOf(body, 'toolConfig'), 'functionCallingConfig'),
        tools.map(({ name }) => name),
      ),
      temperature: number('temperature'),
      topP: number('topP'),
      topK: number('topK'),
      presencePenalty: number('presencePenalty'),
      frequencyPenalty: number('frequencyPenalty'),
      seed: number('seed'),
      maxTokens: number('maxOutputTokens'),
      n: number('candidateCount'),
      stop: stop?.kind === 'array' ? textsOf(stop.items) : [],
      thinkingTokens: thinkingTokens(fieldOf(fieldOf(config, 'thinkingConfig'), 'thinkingBudget')),
      reasoningEffort: readEffort(textAt(fieldOf(config, 'thinkingConfig'), 'thinkingLevel')),
      responseFormatText: responseFormat(config),
      continueFinal: reader.messages.at(-1)?.role === 'assistant',
      streamed: route.streamed,
    },
  }
}

/** Google's -1 leaves it to the model. */
function thinkingTokens(value: LosslessJson | undefined): string | null {
  return value?.kind === 'number' && Number(value.text) >= 0 ? value.text : null
}

function flagOf(value: LosslessJson | undefined): boolean {
  return value?.kind === 'boolean' && value.value
}

function functionsOf(tool: LosslessJson): CanonicalTool[] {
  if (fieldOf(tool, 'computerUse') !== undefined) {
    throw refused(
      'tools.computerUse',
      'its functions are built into Gemini, and another model does not know them',
      'Declare the functions that your client runs as functionDeclarations.',
    )
  }
  const declared = fieldOf(tool, 'functionDeclarations')
  if (declared?.kind !== 'array') return []
  return declared.items.map((one) => {
    const name = textAt(one, 'name')
    if (name === undefined) throw shape('tools.functionDeclarations.name', 'a string')
    const schema = fieldOf(one, 'parametersJsonSchema')
    const parameters = member(one, 'parameters')
    const text = schema ?? (parameters === undefined ? undefined : lowerTypes(parameters))
    return {
      name,
      description: textAt(one, 'description') ?? null,
      parametersText: text === undefined ? null : stringifyLossless(text),
    }
  })
}

/** Google's Schema object writes types in upper case (`OBJECT`); JSON Schema does not. */
function lowerTypes(schema: LosslessJson): LosslessJson {
  if (schema.kind === 'array') return { kind: 'array', items: schema.items.map(lowerTypes) }
  if (schema.kind !== 'object') return schema
  const members = schema.members.map((one) => {
    const { value } = one
    if (one.key !== 'type' || value.kind !== 'string' || !/^[A-Z]+$/.test(value.value)) {
      return { ...one, value: lowerTypes(value) }
    }
    const lower = value.value.toLowerCase()
    return { ...one, value: { kind: 'string' as const, value: lower, raw: JSON.stringify(lower) } }
  })
  return { kind: 'object', members }
}

function toolChoice(config: LosslessJson | undefined, all: readonly string[]): CanonicalRequest['toolChoice'] {
  const mode = textAt(config, 'mode')?.toUpperCase()
  if (mode === undefined || mode === 'MODE_UNSPECIFIED') return null
  if (mode === 'NONE') return 'none'
  if (mode !== 'ANY' && mode !== 'AUTO' && mode !== 'VALIDATED') {
    throw shape('toolConfig.functionCallingConfig.mode', 'AUTO, ANY, NONE or VALIDATED')
  }
  const demanded = mode === 'ANY'
  const allowed = fieldOf(config, 'allowedFunctionNames')
  const names = allowed?.kind === 'array' ? textsOf(allowed.items) : []
  if (names.length === 0) return demanded ? 'required' : 'auto'
  return someOf(names, { all, demanded, field: 'toolConfig.functionCallingConfig.allowedFunctionNames' })
}

function responseFormat(config: LosslessJson | undefined): string | null {
  const mimeType = fieldOf(config, 'responseMimeType')
  if (mimeType?.kind !== 'string' || mimeType.value !== 'application/json') return null
  const given = fieldOf(config, 'responseSchema')
  const schema = fieldOf(config, 'responseJsonSchema') ?? (given === undefined ? undefined : lowerTypes(given))
  if (schema === undefined) return '{"type":"json_object"}'
  return `{"type":"json_schema","json_schema":{"name":"output","schema":${stringifyLossless(schema)},"strict":true}}`
}
