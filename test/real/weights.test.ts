/** New weights in the middle of a call, on a real vLLM: what Paddock says of each token, beside what logprobs alone say. */
import { execFileSync } from 'node:child_process'
import { cp, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startVllm, type Vllm } from '../../scripts/learn.ts'
import { openStore, type SessionLog } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { cache, oneThread, weights } from './vllm.ts'

const ways = [
  { name: 'abort-resubmit', order: { mode: 'abort-resubmit' }, keys: 'anew', mixing: 'none' },
  { name: 'keep, KV cache computed anew', order: { mode: 'keep', cache: 'clear' }, keys: 'anew', mixing: 'none' },
  { name: 'keep with its KV cache', order: { mode: 'keep', cache: 'keep' }, keys: 'kept', mixing: 'kv_mixed' },
] as const
/** So many that new weights come in the middle on a busy machine too. */
const tokens = 600
const reload = [{ path: '/collective_rpc', body: { method: 'reload_weights' } }]

/** Where the weights changed, and how far recorded logprobs are from recomputed ones then. */
interface Change {
  readonly at: number
  readonly max: number
}

describe.skipIf(cache === '')('new weights during a call, vLLM 0.32.0', () => {
  let directory: string
  let engine: Vllm
  let log: SessionLog
  let judged: readonly { readonly anew: Change; readonly kept: Change }[]
  const python = (...args: readonly string[]): string =>
    execFileSync(join(cache, 'venv/bin/python'), [join(import.meta.dirname, 'two_weights.py'), ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  const place = (name: 'one' | 'two' | 'served'): string => join(directory, name)
  /** Beside it and then in its place: an engine may read the file that it loaded from for as long as it serves. */
  const put = async (name: 'one' | 'two'): Promise<void> => {
    await cp(join(place(name), 'model.safetensors'), join(place('served'), 'new'))
    await rename(join(place('served'), 'new'), join(place('served'), 'model.safetensors'))
  }
  beforeAll(async () => {
    directory = tempDir()
    python('make', weights('llama3-tiny'), place('one'), place('two'))
    await cp(place('one'), place('served'), { recursive: true })
    engine = await startVllm({ cache, directory: place('served'), model: 'policy', flags: [], env: oneThread })
    const data = join(directory, 'data')
    const serving = await serve(data, ['--engine', engine.url])
    const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    for (const { name, order } of ways) {
      await put('one')
      await announce(serving, token, { version: `one ${name}`, requests: reload })
      await ask(serving, `Tell ${name}.`, async () => {
        await put('two')
        await announce(serving, token, { version: `two ${name}`, ...order, requests: reload })
      })
    }
    expect((await serving.stop()).code).toBe(0)
    await using store = await openStore(data)
    log = await store.recorder.session(serving.ready.sessionId)
    await writeFile(
      join(directory, 'calls.jsonl'),
      ways.map((_, call) => `${JSON.stringify(told(log, call))}\n`).join(''),
    )
    const said = python('judge', place('one'), place('two'), join(directory, 'calls.jsonl'))
    judged = said
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    console.log(said)
  })
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]()
  })

  it.each(ways.map((way, call) => ({ ...way, call })))(
    '$name: the spans of the answer are those that an independent scoring under both sets of weights finds',
    ({ name, keys, mixing, call }) => {
      const { at, max } = judged[call]?.[keys] ?? { at: 0, max: Number.NaN }
      expect(max).toBeLessThanOrEqual(1e-3)
      expect(judged[call]?.[keys === 'anew' ? 'kept' : 'anew'].max).toBeGreaterThan(1e-3)
      expect(at).toBeGreaterThan(0)
      expect(at).toBeLessThan(tokens)
      const spans = answerOf(log, call).policySpans.map(({ policy, ...span }) => ({ ...span, ...policy }))
      expect(spans).toMatchObject([
        { start: 0, end: at, weightVersion: `one ${name}`, mixing: 'none' },
        { start: at, end: tokens, weightVersion: `two ${name}`, mixing },
      ])
    },
  )
})

/** A streamed answer; `meanwhile` begins behind its thirtieth event. */
async function ask({ ready }: Serving, content: string, meanwhile: () => Promise<void>): Promise<void> {
  const client = new OpenAI({ apiKey: ready.env.OPENAI_API_KEY, baseURL: ready.env.OPENAI_BASE_URL, maxRetries: 0 })
  const messages = [{ role: 'user' as const, content }]
  const body = { model: 'policy', stream: true as const, max_tokens: tokens, temperature: 1, messages }
  let events = 0
  let update: Promise<void> | undefined
  for await (const _ of await client.chat.completions.create(body)) {
    events += 1
    if (events === 30) update = meanwhile()
  }
  await update
}

async function announce({ ready }: Serving, token: string, order: object): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify(order)
  const reply = await fetch(`${ready.control}/engine/weights`, { method: 'POST', headers, body })
  if (!reply.ok) throw new Error(await reply.text())
}

function answerOf({ calls, segments }: SessionLog, call: number): SessionLog['segments'][number] {
  const id = calls[call]?.commit?.choices[0]?.segmentId
  const found = segments.find((segment) => segment.id === id)
  if (found === undefined) throw new Error(`call ${call} has no answer`)
  return found
}

/** What two_weights.py reads of a call. */
function told(log: SessionLog, call: number): object {
  const { tokens: sampled, logprobs, parent } = answerOf(log, call)
  return { prompt: before(log, parent), sampled: [...sampled], logprobs: [...(logprobs ?? [])] }
}

function before(log: SessionLog, parent: SessionLog['segments'][number]['parent']): readonly number[] {
  const segment = log.segments.find(({ id }) => id === parent?.segmentId)
  if (segment === undefined || parent === null) return []
  return [...before(log, segment.parent), ...segment.tokens.subarray(0, parent.offset)]
}
