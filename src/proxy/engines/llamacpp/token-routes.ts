import { PaddockError } from '../../../core/index.ts'
import { parseEngineJson } from '../../dialects/chat/answer.ts'
import { isTokenId } from '../../dialects/chat/wire-values.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { hasMedia } from '../../tokens/chat-body.ts'
import { promptOf } from '../prompt-of.ts'
import { hasGrammar } from '../grammar.ts'
import { askEngine, tryEngineBytes } from '../http.ts'
import { PromptIds } from '../prompt-ids.ts'
import type { ChatText, EngineAsk, TokenEngine } from '../token-engine.ts'
import { completionBody, readCompletion } from './completion.ts'
import { messageOf } from './message.ts'

/** What the server tells of itself; null where this is no llama.cpp. Throws `ENGINE_UNREACHABLE`. */
export async function serverProps(root: string, apiKey: string | null): Promise<LooseObject | null> {
  const props = await askEngine(root, '/props', apiKey)
  return typeof props?.['default_generation_settings'] === 'object' ? props : null
}

/** Where not, tools of a request are left out without a word (run against build 11549). */
export function templateTakesTools(props: LooseObject): boolean {
  return Reflect.get(props['chat_template_caps'] ?? {}, 'supports_tools') !== false
}

/**
 * llama.cpp's way of tokens in, tokens out (tools/server/README.md): `/apply-template` writes messages as text, `/tokenize`
 * makes ids of it as the chat route does, `/completion` takes ids and gives them. Nothing there parses an answer, so that
 * is done here (`message.ts`).
 */
export function llamacppTokens(root: string, apiKey: string | null): TokenEngine {
  const ask = ({ path, body }: EngineAsk) => tryEngineBytes(root, path, apiKey, body)
  let readsCalls = true
  return {
    async probe() {
      const props = await serverProps(root, apiKey)
      const ids = await promptIds(root, apiKey, Buffer.from('{"messages":[{"role":"user","content":"x"}]}'))
      if (props === null || ids === null) return null
      const length = Reflect.get(props['default_generation_settings'] ?? {}, 'n_ctx')
      readsCalls = !templateTakesTools(props) || String(props['chat_template']).includes('<tool_call>')
      return {
        way: 'parse',
        streams: false,
        // It goes on with an answer that stands at the end, whatever `add_generation_prompt` says.
        endsTurns: false,
        maxModelLen: typeof length === 'number' ? length : null,
      }
    },
    ask,
    render,
    tokenize,
    readRender(reply) {
      const ids = idsIn(reply)
      return ids === null ? null : { ids: new PromptIds(Int32Array.from(ids)), media: false, reply, scanned: null }
    },
    takes: (chat) =>
      !hasGrammar(chat) && !hasMedia(messagesOf(chat)) && isOneChoice(chat) && (readsCalls || !offersTools(chat)),
    generate: (_prompt, ids, { chat, spent = 0 }) => ({ path: '/completion', body: completionBody(chat, ids, spent) }),
    readGenerated: readCompletion,
    derenderWhole: ({ chat, callId }, { parts }) =>
      Promise.resolve({
        choices: parts.map((part) => {
          const message = messageOf(part.text ?? '', offersTools(chat), callId)
          const called = 'tool_calls' in message && part.finishReason === 'stop'
          return {
            index: part.index,
            message,
            finish_reason: called ? 'tool_calls' : part.finishReason,
            stop_reason: part.stopReason,
            logprobs: { content: part.entries },
          }
        }),
      }),
  }
}

/** The ids of a chat request's prompt. Throws `ENGINE_UNREACHABLE`, `ENGINE_ERROR`. */
export async function askPromptIds(root: string, apiKey: string | null, chat: Uint8Array): Promise<readonly number[]> {
  const ids = await promptIds(root, apiKey, Buffer.from(chat))
  if (ids !== null) return ids
  throw new PaddockError('ENGINE_ERROR', 'The engine did not count the prompt: its template refuses these messages.')
}

async function promptIds(root: string, apiKey: string | null, chat: Buffer): Promise<readonly number[] | null> {
  const ask = ({ path, body }: EngineAsk) => tryEngineBytes(root, path, apiKey, body)
  const written = await ask(render(chat))
  const question = written.status < 400 ? tokenize(written.body) : null
  if (question === null) return null
  const answer = await ask(question)
  return answer.status < 400 ? idsIn(answer.body) : null
}

function render(chat: Buffer): EngineAsk {
  return { path: '/apply-template', body: Buffer.from(promptOf(chat)) }
}

/** With the tokens that the model's files put in front, as the chat route does; the template leaves them out then. */
function tokenize(reply: Buffer): EngineAsk | null {
  const prompt = parseEngineJson(reply)?.['prompt']
  if (typeof prompt !== 'string') return null
  const body = { content: prompt, add_special: true, parse_special: true }
  return { path: '/tokenize', body: Buffer.from(JSON.stringify(body)) }
}

function idsIn(reply: Buffer): readonly number[] | null {
  const ids = parseEngineJson(reply)?.['tokens']
  return Array.isArray(ids) && ids.length > 0 && ids.every(isTokenId) ? ids : null
}

function messagesOf(chat: ChatText): readonly unknown[] {
  const messages: unknown = JSON.parse(chat.text('messages') ?? '[]')
  return Array.isArray(messages) ? messages : []
}

function isOneChoice(chat: ChatText): boolean {
  return (chat.text('n') ?? '1') === '1'
}

function offersTools(chat: ChatText): boolean {
  return (chat.text('tools') ?? '[]') !== '[]' && chat.text('tool_choice') !== '"none"'
}
