import { editObject } from '../../../core/index.ts'
import { parseEngineJson } from '../../dialects/chat/answer.ts'
import { isTokenId } from '../../dialects/chat/wire-values.ts'
import { promptOf } from '../prompt-of.ts'
import { hasGrammar } from '../grammar.ts'
import { tellEngine, tryEngine, tryEngineBytes } from '../http.ts'
import { contextLength } from '../models.ts'
import { PromptIds } from '../prompt-ids.ts'
import type { TokenEngine } from '../token-engine.ts'
import { serverInfo } from './about.ts'
import { generateBody, readGenerated } from './generate.ts'
import { type Parsers, parsedCompletion } from './parse.ts'

const paths = { chat: '/v1/chat/completions', tokenize: '/tokenize', generate: '/generate' } as const

/** What the adapter around it knows. */
interface ServerFacts {
  readonly streamsIds: boolean
}

/**
 * SGLang's way of tokens in, tokens out: `/tokenize` renders messages (`serving_tokenize.py`; a turn is always opened and
 * `add_generation_prompt` is not read), then the chat route takes `input_ids` in the place of its messages and parses as
 * ever (sgl-project/sglang#23751). Where chat takes no ids, `/generate` does, and `/separate_reasoning` and
 * `/parse_function_call` make the message. Shapes are documented, not run against a real server.
 */
export function sglangTokens(root: string, apiKey: string | null, facts: ServerFacts): TokenEngine {
  let parsers: Parsers = { reasoning: null, tools: null }
  return {
    async probe() {
      const chat = { messages: [{ role: 'user', content: 'x' }] }
      const rendered = await tryEngine(root, paths.tokenize, apiKey, chat)
      const ids = rendered.status < 400 ? rendered.body?.['tokens'] : null
      if (!Array.isArray(ids) || ids.length === 0 || !ids.every(isTokenId)) return null
      const models = await tryEngine(root, '/v1/models', apiKey)
      const about = await serverInfo(root, apiKey)
      parsers = { reasoning: text(about?.['reasoning_parser']), tools: text(about?.['tool_call_parser']) }
      const common = { endsTurns: false, maxModelLen: contextLength(models.body, null) }
      if (await chatTakesIds(root, apiKey, ids)) return { ...common, way: 'chat', streams: facts.streamsIds }
      return (await canParse(root, apiKey, parsers)) ? { ...common, way: 'parse', streams: false } : null
    },
    ask: ({ path, body }) => tryEngineBytes(root, path, apiKey, body),
    render: (chat) => ({ path: paths.tokenize, body: Buffer.from(promptOf(chat)) }),
    readRender(reply) {
      const ids = parseEngineJson(reply)?.['tokens']
      if (!Array.isArray(ids) || !ids.every(isTokenId)) return null
      return { ids: new PromptIds(Int32Array.from(ids)), media: false, reply, scanned: null }
    },
    chatFrom: (chat, ids) => ({
      path: paths.chat,
      // The prefilled text of an answer that is gone on with is in the ids already.
      body: editObject(chat.bytes, { set: { input_ids: ids.text } }),
    }),
    takes: (chat) => !hasGrammar(chat),
    generate: (_prompt, ids, { chat, spent = 0 }) => ({ path: paths.generate, body: generateBody(chat, ids, spent) }),
    readGenerated,
    derenderWhole: (about, generated, ask) => parsedCompletion({ about, generated, ask, parsers }),
  }
}

/**
 * `input_ids` came with `return_meta_info` (sgl-project/sglang#23751), which is refused while streaming, by name: an answer
 * that generates nothing. Servers and routers that do not know these members ignore them and stream a token.
 */
async function chatTakesIds(root: string, apiKey: string | null, ids: readonly number[]): Promise<boolean> {
  const { status, text: said } = await tellEngine(root, paths.chat, apiKey, {
    messages: [{ role: 'user', content: 'x' }],
    input_ids: ids,
    max_tokens: 1,
    stream: true,
    return_meta_info: true,
  })
  return status >= 400 && status < 500 && said.includes('return_meta_info')
}

/** Nothing is generated: bodies without ids are refused by routes that exist. */
async function canParse(root: string, apiKey: string | null, parsers: Parsers): Promise<boolean> {
  const asks = [
    tryEngine(root, paths.generate, apiKey, {}),
    ...(parsers.tools === null
      ? []
      : [tryEngine(root, '/parse_function_call', apiKey, { text: 'x', tools: [], tool_call_parser: parsers.tools })]),
    ...(parsers.reasoning === null ? [] : [thinkingIsWritten(root, apiKey, parsers.reasoning)]),
  ]
  const [generates, ...parses] = await Promise.all(asks)
  const has = generates !== undefined && ![401, 403, 404, 405].includes(generates.status)
  return has && parses.every(({ status }) => status < 400)
}

/**
 * `/separate_reasoning` sees the answer and not its prompt: where the template itself opens the thinking, as it ends a
 * rendered prompt, nobody could tell thinking from content. Told by the end of the prompt, decoded.
 */
async function thinkingIsWritten(
  root: string,
  apiKey: string | null,
  reasoning: string,
): Promise<{ readonly status: number }> {
  const rendered = await tryEngine(root, paths.tokenize, apiKey, { messages: [{ role: 'user', content: 'x' }] })
  const tokens = rendered.body?.['tokens']
  const end = Array.isArray(tokens) ? tokens.slice(-8) : []
  const decoded = await tryEngine(root, '/detokenize', apiKey, { tokens: end, skip_special_tokens: false })
  const said = decoded.body?.['text']
  if (typeof said !== 'string' || opensThinking(said)) return { status: 501 }
  return tryEngine(root, '/separate_reasoning', apiKey, { text: 'x', reasoning_parser: reasoning })
}

function opensThinking(said: string): boolean {
  return /(<think>|\[THINK\])\s*$/i.test(said)
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
