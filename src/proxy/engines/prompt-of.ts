import { PaddockError, scanMembers } from '../../core/index.ts'
import { isTokenId } from '../dialects/chat/wire-values.ts'
import { tryEngineText } from './http.ts'

/**
 * What of a chat request shapes its prompt: the fields of vLLM's TokenizeChatRequest (`entrypoints/serve/tokenize`) and of
 * SGLang's TokenizeRequest (`srt/entrypoints/openai/protocol.py`).
 */
const promptFields = new Set([
  'model',
  'messages',
  'tools',
  'add_generation_prompt',
  'continue_final_message',
  'chat_template_kwargs',
  'tool_choice',
  'reasoning_effort',
])

/** A chat request cut down to what `POST /tokenize` reads of it, byte for byte. */
export function promptOf(chat: Uint8Array): string {
  const bytes = Buffer.from(chat)
  const members = scanMembers(bytes).members.filter((member) => promptFields.has(member.key))
  const texts = members.map((member) => bytes.subarray(member.keyStart, member.valueEnd).toString('utf8'))
  return `{${texts.join(',')}}`
}

/** The ids of a chat request's prompt by `POST /tokenize`, which renders it as a generation would. */
export async function askPromptIds(root: string, apiKey: string | null, chat: Uint8Array): Promise<readonly number[]> {
  const answer = await tryEngineText(root, '/tokenize', apiKey, promptOf(chat))
  const ids = answer.body?.['tokens']
  if (answer.status < 400 && Array.isArray(ids) && ids.every(isTokenId)) return ids
  throw new PaddockError('ENGINE_ERROR', `The engine gave no ids of the prompt: ${saying(answer.body)}`, {
    data: { status: answer.status },
  })
}

/** The ids of a text by `POST /tokenize` (vLLM `TokenizeCompletionRequest`, SGLang `TokenizeRequest`). */
export async function askTextIds(root: string, apiKey: string | null, text: string): Promise<readonly number[]> {
  const asked = JSON.stringify({ prompt: text, add_special_tokens: false })
  const { status, body } = await tryEngineText(root, '/tokenize', apiKey, asked)
  const ids = body?.['tokens']
  if (status < 400 && Array.isArray(ids) && ids.every(isTokenId)) return ids
  throw new PaddockError('ENGINE_ERROR', `The engine gave no ids of the text: ${saying(body)}`, { data: { status } })
}

function saying(body: Readonly<Record<string, unknown>> | null): string {
  const error = body?.['error'] ?? body
  const message = typeof error === 'object' && error !== null ? Reflect.get(error, 'message') : null
  return typeof message === 'string' ? message : 'it gave no reason.'
}
