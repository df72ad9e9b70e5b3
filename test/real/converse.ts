/** A conversation through `paddock serve`, and what it exports. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI from 'openai'
import { serve } from '../cli/paddock.ts'
import { exportRows, type Row } from './rows.ts'
import type { RealServer } from './vllm.ts'

/** An answer with the thinking that vLLM's reasoning parsers take out of it. */
type Said = OpenAI.ChatCompletionAssistantMessageParam & {
  readonly content: string | null
  readonly reasoning?: string
}

export interface Conversation {
  readonly rows: readonly Row[]
  /** Texts of the answers, thinking before the rest. */
  readonly texts: readonly string[]
}

/**
 * Says something after each answer, every other one streamed, and gives each answer back as it came. Thinking stays in
 * the history: what a template does with it is another test's matter.
 */
export async function converse(
  server: RealServer,
  directory: string,
  how: { readonly turns: number; readonly temperature: number },
): Promise<Conversation> {
  const data = join(directory, 'conversation')
  const config = join(directory, 'paddock.config.ts')
  await writeFile(config, "export default { session: { history: 'sampled' } }\n")
  const serving = await serve(data, ['--engine', server.url, '--config', config])
  const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = serving.ready.env
  const client = new OpenAI({ apiKey, baseURL, maxRetries: 0 })
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Let us talk about tea.' }]
  const texts: string[] = []
  for (let turn = 0; turn < how.turns; turn += 1) {
    const body = { model: server.model, messages, max_tokens: 24, temperature: how.temperature }
    const said = turn % 2 === 0 ? await whole(client, body) : await streamed(client, body)
    texts.push((said.reasoning ?? '') + (said.content ?? ''))
    messages.push(said, { role: 'user', content: `And number ${turn}?` })
  }
  const { code, err } = await serving.stop()
  if (code !== 0) throw new Error(err)
  return { rows: await exportRows(data, join(directory, 'conversation-out')), texts }
}

async function whole(client: OpenAI, body: OpenAI.ChatCompletionCreateParamsNonStreaming): Promise<Said> {
  const { choices } = await client.chat.completions.create(body)
  const [choice] = choices
  if (choice === undefined) throw new Error('no choice')
  return choice.message as Said
}

/** The SDK's own helper keeps the last piece of the thinking only. */
async function streamed(client: OpenAI, body: OpenAI.ChatCompletionCreateParamsNonStreaming): Promise<Said> {
  let content = ''
  let reasoning = ''
  for await (const { choices } of await client.chat.completions.create({ ...body, stream: true })) {
    const delta = choices[0]?.delta as { readonly content?: string | null; readonly reasoning?: string } | undefined
    content += delta?.content ?? ''
    reasoning += delta?.reasoning ?? ''
  }
  return { role: 'assistant', content, ...(reasoning === '' ? {} : { reasoning }) }
}
