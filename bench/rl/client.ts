/** A real `paddock serve` with its scripted engine, and the requests of a trainer and of a harness to it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const launcher = fileURLToPath(new URL('../../paddock', import.meta.url))

export type Json = Record<string, unknown>

export interface Opened {
  readonly rollout_id: string
  readonly key: string
  readonly base_url: string
}

export interface Claim {
  readonly claim_id: string
  readonly group_id: string
  readonly round: number
  readonly settled: { readonly usable: number }
}

export interface Row {
  readonly row_id: string
  readonly rollout_id: string
  readonly usable: boolean
  readonly unusable_reason: string | null
  readonly trained_tokens_of: { readonly row: number }
  readonly versions: readonly (readonly [start: number, end: number, lowest: number, highest: number])[]
  readonly turn_spans: readonly (readonly [start: number, end: number])[]
}

export interface Round {
  readonly claim_id: string | null
  readonly policy: { readonly version: number | null }
  readonly members: readonly {
    readonly rollout_id: string
    readonly out: string | null
    readonly end: string | null
    readonly reward: number | null
    readonly sampled_tokens: number
  }[]
  readonly rows: readonly Row[]
}

export interface Answer<T> {
  readonly status: number
  readonly body: T
}

/** Turns that an agent takes, one after the other, each with a tool's time after it. Resolves with those it had when it was stopped. */
export async function converse({ base_url: url, key }: Opened, turns: number, toolMs: number): Promise<number> {
  const messages: { role: string; content: string }[] = []
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push({ role: 'user', content: `turn ${turn}` })
    const answer = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'x', messages }),
    })
    const text = await answer.text()
    if (!answer.ok) return turn
    const { choices } = JSON.parse(text) as { choices: readonly { message: { role: string; content: string } }[] }
    messages.push(choices[0]?.message ?? { role: 'assistant', content: '' })
    await setTimeout(toolMs)
  }
  return turns
}

/** `/rl/v1` of one Paddock. */
export class Client {
  readonly #origin: string
  readonly #token: string

  constructor(control: string, token: string) {
    this.#origin = `${control}/rl/v1`
    this.#token = token
  }

  async send<T = Json>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const answer = await fetch(`${this.#origin}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        'content-type': 'application/json',
        accept: 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as T }
  }

  /** Throws for a refusal. */
  async ask<T = Json>(method: string, path: string, body?: unknown): Promise<T> {
    const { status, body: said } = await this.send<T>(method, path, body)
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(said)}`)
    return said
  }

  async openRun(run: string, more: Json = {}): Promise<void> {
    await this.ask('POST', '/runs', { run_id: run, ...more })
    await this.ask('POST', `/runs/${run}/attach`, { resume_step: null })
  }

  async claim(run: string, more: Json = {}): Promise<readonly Claim[]> {
    const body = { incarnation: 1, wait_s: 5, ...more }
    return (await this.ask<{ claims: readonly Claim[] }>('POST', `/runs/${run}/claims`, body)).claims
  }

  rows({ group_id: group, round, claim_id: claim }: Claim): Promise<Round> {
    return this.ask('GET', `/groups/${group}/rounds/${round}/rows?claim_id=${claim}`)
  }

  /** Says of each row that may train that it was used, and of the others why not. */
  async dispose(run: string, { rows, claim_id }: Round, step: number): Promise<void> {
    const dispositions = rows.map(({ row_id: row, usable, unusable_reason: reason }) => ({
      row,
      claim_id,
      step,
      outcome: usable ? 'used' : reason === 'stale' ? 'stale' : 'skipped',
    }))
    if (dispositions.length > 0) await this.ask('POST', `/runs/${run}/dispositions`, { incarnation: 1, dispositions })
  }

  /** Ends a rollout with a reward; nothing where it was stopped meanwhile. */
  async end(rollout: string, reward: number): Promise<void> {
    const verdict = { source: 'bench', reward }
    const { status, body } = await this.send('POST', `/rollouts/${rollout}/end`, { end: 'completed', verdict })
    if (status >= 400 && status !== 409) throw new Error(`end of ${rollout}: ${status} ${JSON.stringify(body)}`)
  }
}

/** Starts Paddock on free ports, with a data directory that goes with it. */
export async function startPaddock(): Promise<
  AsyncDisposable & { readonly client: Client; readonly control: string; readonly token: string; readonly pid: number }
> {
  const data = await mkdtemp(join(tmpdir(), 'paddock-bench-rl-'))
  const args = ['serve', '--json', '--data', data, '--port', '0', '--control-port', '0']
  const child = spawn(launcher, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const over = once(child, 'close')
  const lines = createInterface({ input: child.stdout })
  // All lines are read: a full pipe would stop Paddock.
  lines.on('line', () => undefined)
  const ready = await Promise.race([once(lines, 'line'), over.then(() => null)])
  if (ready === null) throw new Error('paddock serve did not start')
  const { control } = JSON.parse(String(ready[0])) as { control: string }
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  return {
    client: new Client(control, token),
    control,
    token,
    pid: child.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGINT')
      await over
      await rm(data, { recursive: true })
    },
  }
}

/** mulberry32: the same numbers in every run. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length
}
