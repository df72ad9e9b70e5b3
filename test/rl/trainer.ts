/** A trainer over HTTP, and a harness of its own, against a real `paddock serve`. */
import { expect } from 'vitest'
import type { Serving } from '../cli/paddock.ts'
import { Described, type OpenApi } from './described.ts'

export type Json = Record<string, unknown>

export interface OpenedRollout {
  readonly rollout_id: string
  readonly slot: number
  readonly session_id: string
  readonly key: string
  readonly base_url: string
}

export interface Claim {
  readonly claim_id: string
  readonly group_id: string
  readonly round: number
  readonly again: boolean
  readonly settled: { readonly usable: number; readonly members: number; readonly state: string }
}

export interface JsonRow {
  readonly row_id: string
  readonly rollout_id: string
  readonly session_id: string
  readonly node_ids: readonly string[]
  readonly usable: boolean
  readonly unusable_reason: string | null
  readonly reward: number | null
  readonly weight: number
  readonly rows_of_rollout: number
  readonly fork_reason: string | null
  readonly trained_tokens_of: { readonly row: number; readonly rollout: number; readonly group: number }
  readonly n_tokens: number
  readonly prompt_len: number
  readonly versions: readonly (readonly number[])[]
  readonly turn_spans: readonly (readonly number[])[]
  readonly turn_nodes: readonly number[] | null
  readonly observation_spans: readonly (readonly number[])[]
  readonly mask_reasons: readonly (readonly [number, number, string])[]
  readonly arrays: {
    readonly token_ids: readonly number[]
    readonly loss_mask: readonly number[]
    readonly logprobs: readonly (number | null)[]
  }
}

export interface JsonRound {
  readonly claim_id: string | null
  readonly policy: { readonly version: number | null }
  readonly task: { readonly name: string; readonly digest: string }
  readonly members: readonly {
    readonly rollout_id: string
    readonly out: string | null
    readonly reward: number | null
  }[]
  readonly nodes:
    | readonly {
        readonly parent: number | null
        readonly depth: number
        readonly rollouts: readonly string[]
        readonly count: number
        readonly value: number | null
      }[]
    | null
  readonly rows: readonly JsonRow[]
}

/** One trainer's view of the control listener. Every JSON answer has to be as the listener's OpenAPI document says. */
export class Trainer {
  readonly #origin: string
  readonly #token: string
  #description: Promise<Described> | null = null
  /** The claim that each row came with last. */
  readonly #claimOf = new Map<string, string>()

  constructor({ ready }: Pick<Serving, 'ready'>, token: string) {
    this.#origin = `${ready.control}/rl/v1`
    this.#token = token
  }

  send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.#origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  }

  async ask<T = Json>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.send(method, path, body)
    const text = await answer.text()
    expect(answer.ok, `${method} ${path}: ${answer.status} ${text}`).toBe(true)
    return (await this.#described(method, path, answer.status, text)) as T
  }

  description(): Promise<Described> {
    this.#description ??= (async () => {
      const answer = await this.send('GET', '/openapi.json')
      return new Described((await answer.json()) as OpenApi)
    })()
    return this.#description
  }

  async #described(method: string, path: string, status: number, text: string): Promise<unknown> {
    const body: unknown = JSON.parse(text)
    const description = await this.description()
    description.holds(method, path, status, body)
    return body
  }

  /** Status and code of an answer that is a refusal. */
  async refused(method: string, path: string, body?: unknown): Promise<readonly [number, string]> {
    const answer = await this.send(method, path, body)
    const found = await this.#described(method, path, answer.status, await answer.text())
    const { error } = found as { error?: { code: string } }
    return [answer.status, error?.code ?? 'none']
  }

  async attach(run: string, resumeStep: number | null = null): Promise<number> {
    const body = { resume_step: resumeStep }
    return (await this.ask<{ incarnation: number }>('POST', `/runs/${run}/attach`, body)).incarnation
  }

  async claim(run: string, more: Json = {}): Promise<readonly Claim[]> {
    const body = { incarnation: 1, ...more }
    return (await this.ask<{ claims: readonly Claim[] }>('POST', `/runs/${run}/claims`, body)).claims
  }

  async rows(group: string, claim: string | null, round = 0): Promise<JsonRound> {
    const query = claim === null ? '' : `?claim_id=${claim}`
    const headers = { accept: 'application/json' }
    const answer = await this.send('GET', `/groups/${group}/rounds/${round}/rows${query}`, undefined, headers)
    expect(answer.status).toBe(200)
    const path = `/groups/${group}/rounds/${round}/rows`
    const found = (await this.#described('GET', path, 200, await answer.text())) as JsonRound
    if (claim !== null) for (const { row_id: row } of found.rows) this.#claimOf.set(row, claim)
    return found
  }

  /** Each names the claim that its row came with last, unless it says another. */
  said(dispositions: readonly Json[]): readonly Json[] {
    return dispositions.map((one) => ({ claim_id: this.#claimOf.get(String(one['row'])) ?? 'none', ...one }))
  }

  dispose(run: string, dispositions: readonly Json[], incarnation = 1): Promise<Json> {
    return this.ask('POST', `/runs/${run}/dispositions`, { incarnation, dispositions: this.said(dispositions) })
  }

  open(group: string, more: Json = {}): Promise<OpenedRollout> {
    return this.ask('POST', '/rollouts', { group_id: group, ...more })
  }

  end(rollout: string, reward: number | null, how = 'completed'): Promise<Json> {
    const verdict = reward === null ? null : { source: 'test', reward }
    return this.ask('POST', `/rollouts/${rollout}/end`, { end: how, verdict })
  }

  /** A group of one member for each reward, each of so many turns; it has settled when this resolves. */
  async settle(run: string, group: string, rewards: readonly (number | null)[], turns = 2): Promise<readonly string[]> {
    await this.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: group, task, n: rewards.length }] })
    const ids: string[] = []
    for (const reward of rewards) {
      const opened = await this.open(group)
      await talk(opened, turns)
      const verdict = reward === null ? { source: 'test', reward, reason: 'nobody knows' } : { source: 'test', reward }
      await this.ask('POST', `/rollouts/${opened.rollout_id}/end`, { end: 'completed', verdict })
      ids.push(opened.rollout_id)
    }
    return ids
  }
}

export const task = { name: 'sum', instruction: 'Add 2 and 2.' }

interface Message {
  readonly role: string
  readonly content: string
}

/** A harness: it says something and goes on from what it hears. */
export async function talk(opened: OpenedRollout, turns: number, more: Json = {}): Promise<readonly Message[]> {
  const messages: Message[] = []
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push({ role: 'user', content: `turn ${turn}` })
    messages.push(await say(opened, messages, more))
  }
  return messages
}

export async function say(opened: OpenedRollout, messages: readonly Message[], more: Json = {}): Promise<Message> {
  const answer = await fetch(`${opened.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${opened.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'x', messages, ...more }),
  })
  const text = await answer.text()
  expect(answer.status, text).toBe(200)
  const { choices } = JSON.parse(text) as { choices: readonly { message: Message }[] }
  return choices[0]?.message ?? { role: 'assistant', content: '' }
}
