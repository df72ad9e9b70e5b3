import { setTimeout as sleep } from 'node:timers/promises'
import type OpenAI from 'openai'
import { systemClock } from '../../core/index.ts'
import { Pace } from './pace.ts'
import type { Prompt } from './prompt.ts'
import { type Judged, readReply, replySchema } from './reply.ts'
import type { RubricItem } from './rubric.ts'
import { type JudgeServer, purposeHeader } from './server.ts'

export interface AskerOptions {
  /** Default 0. */
  readonly temperature?: number
  /** Answer tokens. Default 1024. */
  readonly maxTokens?: number
  /** Asks for structured output by JSON schema. Default true; replies are checked in any case. */
  readonly structured?: boolean
  /** Replies that may be asked for again because they do not fit. Default 1. */
  readonly repairs?: number
  /** Tries at a call that the server refuses for load or fails. Default 4. */
  readonly tries?: number
  readonly timeoutMs?: number
  /** First wait between tries, doubled each time; a `retry-after` of the server wins. Default 500. */
  readonly backoffMs?: number
  readonly maxInFlight?: number
  readonly maxPerMinute?: number
}

/** Whom a question goes to. */
export interface Recipient {
  readonly server: JudgeServer
  /** It is recorded, with what it was asked for. */
  readonly recorded: boolean
}

/** A question beside its prompt. */
interface Question {
  readonly vote: number
  readonly to: Recipient
  /** In a word: `canary` or `case`. */
  readonly purpose: string
  readonly signal: AbortSignal
}

export type Asked = { readonly tokens: number } & (
  | { readonly ok: true; readonly judged: Judged }
  | { readonly ok: false; readonly why: string }
)

type Message = OpenAI.ChatCompletionMessageParam
/** What the server said; null: something else went wrong. */
type Refusal = InstanceType<typeof OpenAI.APIError> | null

const longestWaitMs = 60_000

/** Puts one question to the judge, with repair, retries and pace. */
export class Asker {
  readonly #options: AskerOptions
  readonly #pace: Pace

  constructor(options: AskerOptions) {
    this.#options = options
    this.#pace = new Pace({
      inFlight: options.maxInFlight ?? 16,
      perMinute: options.maxPerMinute ?? Number.POSITIVE_INFINITY,
      clock: systemClock,
    })
  }

  /** Resolves for every fault of the judge; rejects only with the signal's reason. */
  async ask(item: RubricItem, prompt: Prompt, o: Question): Promise<Asked> {
    const messages: Message[] = [
      { role: 'system', content: prompt.system },
      { role: 'user', content: prompt.user },
    ]
    let tokens = 0
    let why = ''
    for (let attempt = 0; attempt <= (this.#options.repairs ?? 1); attempt += 1) {
      const purpose = `${attempt === 0 ? o.purpose : 'repair'}/${item.name}`
      const reply = await this.#complete(messages, replySchema(item, prompt.mark), { ...o, purpose })
      tokens += reply.tokens
      if (!reply.ok) return { ok: false, why: reply.why, tokens }
      const reading = reply.cut
        ? { ok: false as const, why: 'it was cut at its token limit' }
        : readReply(reply.text, item, prompt.mark)
      if (reading.ok) return { ok: true, judged: reading.judged, tokens }
      why = reading.why
      messages.push(
        { role: 'assistant', content: reply.text.slice(0, 4000) },
        { role: 'user', content: `Your reply cannot be used: ${why}. Reply again, with the one JSON object alone.` },
      )
    }
    return { ok: false, why: `the judge's reply cannot be used: ${why}`, tokens }
  }

  async #complete(
    messages: readonly Message[],
    schema: Record<string, unknown>,
    { vote, to, purpose, signal }: Question,
  ): Promise<
    | { readonly ok: true; readonly text: string; readonly cut: boolean; readonly tokens: number }
    | { readonly ok: false; readonly why: string; readonly tokens: 0 }
  > {
    const { temperature = 0, maxTokens = 1024, structured = true, tries = 4, backoffMs = 500 } = this.#options
    const { timeoutMs = 120_000 } = this.#options
    const { baseUrl, apiKey, model } = to.server
    const headers = to.recorded ? { [purposeHeader]: encodeURI(purpose) } : {}
    // Loaded by who asks: most programs with this room have no judge.
    const { OpenAI: Client, APIError } = await import('openai')
    const client = new Client({ baseURL: baseUrl, apiKey, timeout: timeoutMs, maxRetries: 0 })
    let why = ''
    for (let attempt = 0; attempt < tries; attempt += 1) {
      try {
        const asked = {
          model,
          messages: [...messages],
          temperature,
          max_tokens: maxTokens,
          seed: vote,
          ...(structured
            ? {
                response_format: {
                  type: 'json_schema' as const,
                  json_schema: { name: 'judgement', strict: true, schema },
                },
              }
            : {}),
        }
        const completion = await this.#pace.run(
          () => client.chat.completions.create(asked, { signal, headers }),
          signal,
        )
        const choice = completion.choices?.[0]
        const tokens = completion.usage?.total_tokens ?? 0
        return { ok: true, text: choice?.message?.content ?? '', cut: choice?.finish_reason === 'length', tokens }
      } catch (error) {
        if (signal.aborted) throw signal.reason
        why = error instanceof Error ? error.message : String(error)
        const refusal = error instanceof APIError ? error : null
        if (!worthAnotherTry(refusal)) break
        if (attempt < tries - 1) await sleep(waitOf(refusal, backoffMs * 2 ** attempt), undefined, { signal })
      }
    }
    return { ok: false, why: `the judge does not answer: ${why.slice(0, 300)}`, tokens: 0 }
  }
}

// A refusal of the request itself would come again; load, faults and broken connections may pass.
function worthAnotherTry(refusal: Refusal): boolean {
  if (refusal === null) return true
  const { status } = refusal
  return status === undefined || status === 408 || status === 409 || status === 429 || status >= 500
}

function waitOf(refusal: Refusal, backoffMs: number): number {
  const header = refusal?.headers?.get('retry-after')
  const seconds = header === null || header === undefined || header === '' ? Number.NaN : Number(header)
  return Math.min(longestWaitMs, Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : backoffMs)
}
