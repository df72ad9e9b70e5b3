/** The four dialects as their official clients speak them. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import type { DialectName } from './speaker.ts'

/** Where an official client is pointed. */
export interface Pointed {
  /** `<origin>/s/<session>`. */
  readonly root: string
  readonly key: string
  readonly model: string
  /** 400 where nothing is said. */
  readonly maxTokens?: number
  /** The engine's own where nothing is said. */
  readonly temperature?: number
}

/** An answer as the client's user gets it. */
export interface Got {
  readonly text: string
  readonly finish: string | null
}

/** Asks one question without the client's own retries. Rejects with the client's own error. */
export type OfficialAsk = (pointed: Pointed, question: string, stream: boolean) => Promise<Got>

const most = 400

/** As each client takes an absent member. */
const heat = (temperature: number | undefined) => (temperature === undefined ? {} : { temperature })

const chat: OfficialAsk = async ({ root, key, model, maxTokens = most, temperature }, question, stream) => {
  const client = new OpenAI({ apiKey: key, baseURL: `${root}/v1`, maxRetries: 0 })
  const body = {
    model,
    max_tokens: maxTokens,
    ...heat(temperature),
    messages: [{ role: 'user' as const, content: question }],
  }
  if (!stream) {
    const answer = await client.chat.completions.create(body)
    return { text: answer.choices[0]?.message.content ?? '', finish: answer.choices[0]?.finish_reason ?? null }
  }
  let text = ''
  let finish: string | null = null
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? ''
    finish = chunk.choices[0]?.finish_reason ?? finish
  }
  return { text, finish }
}

const responses: OfficialAsk = async ({ root, key, model, maxTokens = most, temperature }, question, stream) => {
  const client = new OpenAI({ apiKey: key, baseURL: `${root}/v1`, maxRetries: 0 })
  const body = { model, max_output_tokens: maxTokens, ...heat(temperature), input: question, store: false }
  const answer = stream
    ? await client.responses.stream(body).finalResponse()
    : await client.responses.create({ ...body, stream: false })
  return { text: answer.output_text, finish: answer.status ?? null }
}

const messages: OfficialAsk = async ({ root, key, model, maxTokens = most, temperature }, question, stream) => {
  const client = new Anthropic({ apiKey: key, baseURL: root, maxRetries: 0 })
  const body = {
    model,
    max_tokens: maxTokens,
    ...heat(temperature),
    messages: [{ role: 'user' as const, content: question }],
  }
  const answer = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body)
  return {
    text: answer.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    finish: answer.stop_reason,
  }
}

const gemini: OfficialAsk = async ({ root, key, model, maxTokens = most, temperature }, question, stream) => {
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: root, retryOptions: { attempts: 1 } } })
  const body = { model, contents: question, config: { maxOutputTokens: maxTokens, ...heat(temperature) } }
  if (!stream) {
    const answer = await client.models.generateContent(body)
    return { text: answer.text ?? '', finish: answer.candidates?.[0]?.finishReason ?? null }
  }
  let text = ''
  let finish: string | null = null
  for await (const part of await client.models.generateContentStream(body)) {
    text += part.text ?? ''
    finish = part.candidates?.[0]?.finishReason ?? finish
  }
  return { text, finish }
}

export const official: Readonly<Record<DialectName, OfficialAsk>> = { chat, responses, messages, gemini }
export const dialects: readonly DialectName[] = ['chat', 'responses', 'messages', 'gemini']
