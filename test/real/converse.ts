/** A conversation through `paddock serve`, and what it exports. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI from 'openai'
import { serve } from '../cli/paddock.ts'
import { exportRows, type Row } from './rows.ts'
import type { RealServer } from './vllm.ts'

/**
 * Says something after each answer, every other one streamed, and gives each answer back as it came. Thinking stays in
 * the history: what a template does with it is another test's matter.
 */
export async function converse(
  server: RealServer,
  directory: string,
  how: { readonly turns: number; readonly temperature: number },
): Promise<readonly Row[]> {
  const data = join(directory, 'conversation')
  const config = join(directory, 'paddock.config.ts')
  await writeFile(config, "export default { session: { history: 'sampled' } }\n")
  const serving = await serve(data, ['--engine', server.url, '--config', config])
  const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = serving.ready.env
  const client = new OpenAI({ apiKey, baseURL, maxRetries: 0 })
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Let us talk about tea.' }]
  for (let turn = 0; turn < how.turns; turn += 1) {
    const body = { model: server.model, messages, max_tokens: 24, temperature: how.temperature }
    const answer =
      turn % 2 === 0
        ? await client.chat.completions.create(body)
        : await client.chat.completions.stream(body).finalChatCompletion()
    const [choice] = answer.choices
    if (choice === undefined) throw new Error('no choice')
    messages.push(choice.message, { role: 'user', content: `And number ${turn}?` })
  }
  const { code, err } = await serving.stop()
  if (code !== 0) throw new Error(err)
  return exportRows(data, join(directory, 'conversation-out'))
}
