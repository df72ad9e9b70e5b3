/** Versions that are LoRA adapters, on a real vLLM: what Paddock says of each token, beside a forward pass of the merged weights. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startVllm, type Vllm } from '../../scripts/learn.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Trainer } from '../rl/trainer.ts'
import { exportRows, judge, type Judged, type Row } from './rows.ts'
import { cache, oneThread, weights } from './vllm.ts'

const model = 'llama3-tiny'
const strategies = ['record', 'splice'] as const
/** Of the answer in whose middle the adapter changes. */
const long = 150

interface LoraRow extends Row {
  readonly policy_spans: readonly { readonly adapter: string | null; readonly weight_version: string | null }[]
}

/** What lora_loop.py tells. */
interface Learned {
  readonly metrics: readonly { readonly step: number; readonly mismatch: { readonly max: number } }[]
  readonly policy: { readonly version: number; readonly label: string }
}

interface Scored {
  readonly sequences: readonly { readonly from: number; readonly logprobs: readonly (number | null)[] }[]
}

describe.skipIf(cache === '')('LoRA adapters as versions, vLLM 0.32.0', () => {
  let directory: string
  let engine: Vllm
  let serving: Serving
  let token: string
  let trainer: Trainer
  let rows: readonly LoraRow[]
  const texts: string[] = []
  const listed: Record<string, readonly string[]> = {}
  let scored: number
  let learned: Learned

  const start = (port?: number): Promise<Vllm> =>
    startVllm({
      cache,
      directory: weights(model),
      model: 'policy',
      flags: ['--enable-lora', '--max-loras', '2', '--max-lora-rank', '8'],
      env: { ...oneThread, VLLM_ALLOW_RUNTIME_LORA_UPDATING: '1' },
      ...(port === undefined ? {} : { port }),
    })
  const live = async (version: number, name: 'a' | 'b'): Promise<void> => {
    const adapter = { name: `adapter-${name}`, path: join(directory, name) }
    const said = {
      incarnation: 1,
      version,
      phase: 'live',
      step: version > 0 ? version - 1 : null,
      label: `version-${name}`,
      adapter,
    }
    expect(await trainer.ask('POST', '/runs/lora/policy', said)).toMatchObject({
      replicas: [{ label: `version-${name}`, source: 'told' }],
      out: [],
    })
  }
  const look = async (when: string): Promise<void> => {
    const { data } = (await (await fetch(`${engine.url}/v1/models`)).json()) as { data: { id: string }[] }
    listed[when] = data.map(({ id }) => id)
  }
  /** One call of a session of its own: each is a row. All ask the same, so that a prefix cache could mix them. */
  const ask = async (strategy: 'record' | 'splice', stream: boolean, most = 24): Promise<AsyncGenerator<string>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const order = { method: 'POST', headers, body: JSON.stringify({ policy: { strategy } }) }
    const opened = await fetch(`${serving.ready.control}/sessions`, order)
    const { key, baseUrl } = (await opened.json()) as { key: string; baseUrl: string }
    const messages = [{ role: 'user', content: 'Tell of the same place, and of all that there is to be seen in it.' }]
    const body = { model: 'policy', messages, stream, max_tokens: most, temperature: 1, ignore_eos: true }
    const answer = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(200)
    return pieces(answer)
  }
  const asked = async (...how: Parameters<typeof ask>): Promise<void> => {
    texts.push(await rest(await ask(...how)))
  }
  const all = async (): Promise<void> => {
    for (const strategy of strategies) for (const stream of [false, true]) await asked(strategy, stream)
  }

  beforeAll(async () => {
    directory = tempDir()
    const made = [join(import.meta.dirname, 'two_adapters.py'), weights(model), directory]
    execFileSync(join(cache, 'venv/bin/python'), made, { stdio: ['ignore', 'ignore', 'pipe'] })
    engine = await start()
    const data = join(directory, 'data')
    serving = await serve(data, ['--engine', engine.url])
    token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    trainer = new Trainer(serving, token)
    await trainer.ask('POST', '/runs', { run_id: 'lora' })
    await trainer.attach('lora')
    await all()
    await live(1, 'a')
    await all()
    const streams = await Promise.all(strategies.map((strategy) => ask(strategy, true, long)))
    const begun = await Promise.all(streams.map((stream) => taken(stream, 20)))
    await live(2, 'b')
    await look('while two streams run')
    for (const strategy of strategies) await asked(strategy, false)
    for (const [at, stream] of streams.entries()) {
      texts.push(`${begun[at] ?? ''}${await rest(stream)}`)
    }
    await look('at their end')
    await all()
    await engine.kill()
    engine = await start(Number(new URL(engine.url).port))
    await look('started anew')
    await all()
    await look('asked again')
    rows = (await exportRows(data, join(directory, 'out'))) as readonly LoraRow[]
    scored = await rescored()
    await trainer.ask('POST', '/runs/lora/close', {})
    learned = await loop()
    await look('behind the loop')
    expect((await serving.stop()).code).toBe(0)
  })
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]()
  })

  /** The ids of an answer once more, under the adapter that is live. */
  async function rescored(): Promise<number> {
    const row = under('adapter-b')[0]
    if (row === undefined) throw new Error('no row')
    const order = { sequences: [{ ids: row.token_ids }], if_version: 'version-b' }
    const { sequences } = await trainer.ask<Scored>('POST', '/score', order)
    const [{ from, logprobs } = { from: 0, logprobs: [] }] = sequences
    const apart = row.logprobs.map((told, at) => Math.abs((logprobs[at - from] ?? Number.NaN) - (told ?? Number.NaN)))
    return Math.max(...apart.filter((_, at) => row.loss_mask[at] === 1))
  }

  /** Four steps of the reference loop, the last two from its checkpoint. */
  async function loop(): Promise<Learned> {
    const { control } = serving.ready
    const env = { PYTHONPATH: 'clients/python/src', PADDOCK_CONTROL_URL: control, PADDOCK_CONTROL_TOKEN: token }
    const args = ['-B', join(import.meta.dirname, 'lora_loop.py'), weights(model), join(directory, 'loop')]
    const child = spawn(join(cache, 'venv/bin/python'), args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [out, err, [code]] = await Promise.all([textOf(child.stdout), textOf(child.stderr), once(child, 'close')])
    expect(code, err).toBe(0)
    return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Learned
  }

  const under = (adapter: string | null) => rows.filter((row) => row.policy_spans[0]?.adapter === adapter)

  it('each answer is of one version, and no text names an adapter', () => {
    const versions = rows.map(({ policy_spans: spans }) => spans.map((one) => `${one.adapter} ${one.weight_version}`))
    const count = (version: string) => versions.filter((one) => one.length === 1 && one[0] === version).length
    // The last two under `a` went on while calls ran under `b`.
    expect([count('null default'), count('adapter-a version-a'), count('adapter-b version-b')]).toEqual([4, 6, 10])
    expect(rows).toHaveLength(20)
    expect(rows.filter(({ loss_mask: mask }) => mask.filter((bit) => bit === 1).length === long)).toHaveLength(2)
    for (const text of texts) expect(text).not.toMatch(/adapter-|version-/)
  })

  it('an adapter stays for what runs under it, goes then, and comes back with its server', () => {
    expect(listed).toMatchObject({
      'while two streams run': ['policy', 'adapter-a', 'adapter-b'],
      'at their end': ['policy', 'adapter-b'],
      'started anew': ['policy'],
      'asked again': ['policy', 'adapter-b'],
    })
  })

  it('the reference loop trains one, each step sampled by the adapter that the step before made', () => {
    const { metrics, policy } = learned
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3])
    // Float32 on both sides; a bound of the loop itself stops it at more.
    for (const { mismatch } of metrics) expect(mismatch.max).toBeLessThan(1e-2)
    expect(policy).toMatchObject({ version: 4, label: expect.stringMatching(/^lora-loop-4-[0-9a-f]{12}$/) })
    expect(listed['behind the loop']).toEqual(['policy', policy.label])
  })

  it('logprobs are those of the merged weights of the adapter that a row names, and of no other', async () => {
    const [own, a, b] = [under(null), under('adapter-a'), under('adapter-b')]
    const places = { own: weights(model), a: join(directory, 'merged-a'), b: join(directory, 'merged-b') }
    const judged: Record<string, Readonly<Record<string, Judged>>> = {}
    for (const [name, at] of Object.entries(places)) judged[name] = await judge(directory, { at }, { own, a, b })
    console.log(judged, { scored })
    for (const place of Object.keys(places)) {
      for (const set of Object.keys(places)) {
        const p99 = judged[place]?.[set]?.p99 ?? Number.NaN
        if (place === set) expect(p99).toBeLessThanOrEqual(1e-3)
        else expect(p99).toBeGreaterThan(1e-1)
      }
    }
    expect(scored).toBeLessThanOrEqual(1e-3)
  })
})

async function* pieces({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const chunk of body ?? []) yield decoder.decode(chunk, { stream: true })
}

async function rest(stream: AsyncGenerator<string>): Promise<string> {
  let text = ''
  for await (const piece of stream) text += piece
  return text
}

async function taken(stream: AsyncGenerator<string>, count: number): Promise<string> {
  let text = ''
  for (let at = 0; at < count; at += 1) text += (await stream.next()).value ?? ''
  return text
}
