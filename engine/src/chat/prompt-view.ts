import { parseJson } from '../json/lossless.ts'
import type { JsonObject } from '../json/lossless.ts'
import type { Vocabulary } from '../tokenizer/tokenizer.ts'

/** One turn as it stands in a prompt. */
export interface PromptTurn {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly text: string
}

/**
 * What can be read back out of prompt ids. The policy sees nothing else: whatever came over the wire as messages or
 * as ids, the same ids give the same distribution, as with a model.
 */
export interface PromptView {
  readonly turns: readonly PromptTurn[]
  /** Offered tools, `{"type":"function","function":{...}}` each. */
  readonly tools: readonly JsonObject[]
  /** Ids after the header of the turn that is to be written; undefined when the prompt opens no assistant turn. */
  readonly open: Int32Array | undefined
}

/** How a family of templates marks its turns. */
export interface TurnGrammar {
  readonly startToken: string
  /** Ends the role name: an added token, or the newline of ChatML. */
  readonly headerEnd: { readonly token: string } | { readonly newline: true }
  readonly terminators: readonly string[]
  readonly toolRoles: readonly string[]
}

const TOOL_RESULT = /^\s*<tool_response>/
const TOOLS_BLOCKS = /<tools>\n([\s\S]*?)\n<\/tools>/g

/** Reads a prompt back into turns. Text outside turns (a raw completion prompt) is ignored. */
export function viewPrompt(ids: Int32Array, vocabulary: Vocabulary, grammar: TurnGrammar): PromptView {
  const start = vocabulary.idOf(grammar.startToken)
  const ends = new Set(grammar.terminators.map((token) => vocabulary.idOf(token)))
  const turns: PromptTurn[] = []
  let open: Int32Array | undefined
  for (let at = ids.indexOf(start); at !== -1; at = ids.indexOf(start, at + 1)) {
    const header = readHeader(ids, at + 1, vocabulary, grammar)
    if (header === undefined) continue
    let end = header.bodyAt
    while (end < ids.length && !ends.has(ids[end] ?? -1) && ids[end] !== start) end++
    const body = ids.subarray(header.bodyAt, end)
    if (end >= ids.length && header.role === 'assistant') {
      open = body
      break
    }
    const text = vocabulary.decode(body)
    turns.push({ role: roleOf(header.role, text, grammar), text })
    at = end - 1
  }
  return { turns, tools: offeredTools(turns), open }
}

/** Whether the turn to be written stands inside `<think>`. */
export function thinkingOpenIn(view: PromptView, vocabulary: Vocabulary): boolean {
  const opened = view.open === undefined ? '' : vocabulary.decode(view.open)
  return opened.lastIndexOf('<think>') > opened.lastIndexOf('</think>')
}

function readHeader(
  ids: Int32Array,
  at: number,
  vocabulary: Vocabulary,
  grammar: TurnGrammar,
): { role: string; bodyAt: number } | undefined {
  if ('token' in grammar.headerEnd) {
    const end = ids.indexOf(vocabulary.idOf(grammar.headerEnd.token), at)
    if (end === -1) return undefined
    // Llama headers are followed by a blank line, one token; it belongs to the header.
    const blank = vocabulary.decode(ids.subarray(end + 1, end + 2)) === '\n\n' ? 1 : 0
    return { role: vocabulary.decode(ids.subarray(at, end)), bodyAt: end + 1 + blank }
  }
  let header = ''
  for (let end = at; end < ids.length && end < at + 8; end++) {
    const text = vocabulary.decode(ids.subarray(end, end + 1))
    if (text.startsWith('\n')) return { role: header, bodyAt: text === '\n' ? end + 1 : end }
    header += text
  }
  return undefined
}

function roleOf(name: string, text: string, grammar: TurnGrammar): PromptTurn['role'] {
  if (grammar.toolRoles.includes(name) || (name === 'user' && TOOL_RESULT.test(text))) return 'tool'
  if (name === 'assistant' || name === 'system') return name
  return 'user'
}

function offeredTools(turns: readonly PromptTurn[]): JsonObject[] {
  const system = turns[0]?.role === 'system' ? turns[0].text : ''
  const tools: JsonObject[] = []
  for (const line of [...system.matchAll(TOOLS_BLOCKS)].flatMap(([, block = '']) => block.split('\n'))) {
    try {
      const tool = parseJson(line)
      if (tool instanceof Map) tools.push(tool)
    } catch {
      // A harness may use the same tags for a list of its own (pi does); lines that are no JSON offer no tool.
    }
  }
  return tools
}
