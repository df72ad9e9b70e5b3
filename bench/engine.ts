/**
 * Tokens per second of a real vLLM on this machine's CPU, through Paddock and without it: streamed chats of SmolLM2, all of
 * one length, 1 and 16 clients. The engine is asked twice without Paddock: for text, and for the ids and logprobs that Paddock
 * asks for. Rounds of the ways follow each other, so that whoever else uses the machine meets all of them.
 * Needs what `scripts/real-up` sets up.
 *
 *   node bench/engine.ts [--rounds 5] [--tokens 64] [--clients 1,16]
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import OpenAI from 'openai'
import { startVllm } from '../scripts/learn.ts'
import { readFlags } from './flags.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const { rounds, tokens, clients } = readFlags(
  { rounds: 5, tokens: 64, clients: '1,16' },
  { rounds: 1, tokens: 4, clients: '1,2' },
)
const loads = clients.split(',').map(Number)

/** How many answers a client asks for, one after another: a lone client's single answer is over too soon to tell. */
const answers = (size: number): number => (size === 1 ? 3 : 1)

interface Way {
  readonly name: string
  readonly client: OpenAI
  readonly asks?: object
}

const cache = execFileSync('sh', [join(root, 'scripts/real-up')], { encoding: 'utf8' }).trim()
const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-engine-'))
const stops: (() => Promise<void>)[] = []
let asked = 0
try {
  const flags = ['--max-num-seqs', '16']
  const engine = await startVllm({ cache, directory: join(cache, 'models/smollm2'), model: 'smollm2', flags })
  stops.push(async () => engine[Symbol.asyncDispose]())
  const alone = {
    name: 'engine alone',
    client: new OpenAI({ apiKey: 'x', baseURL: `${engine.url}/v1`, maxRetries: 0 }),
  }
  const asks = { logprobs: true, return_token_ids: true, return_tokens_as_token_ids: true }
  const told = { ...alone, name: 'alone, ids and logprobs', asks }
  const ways: readonly Way[] = [alone, told, await paddock('record', engine.url), await paddock('splice', engine.url)]
  for (const way of ways) await underLoad(way, 1)
  console.log(`${tokens} tokens an answer, streamed; medians of ${rounds} rounds, and of the ratios within rounds`)
  console.log(`${'tokens per second'.padEnd(24)}${loads.map((size) => `${size} clients`.padStart(22)).join('')}   goal`)
  const rates = new Map(ways.map(({ name }) => [name, loads.map((): number[] => [])]))
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, size] of loads.entries()) {
      // Another begins each time: nobody always comes behind the same one.
      for (let turn = 0; turn < ways.length; turn += 1) {
        const way = ways[(turn + round) % ways.length] ?? alone
        rates.get(way.name)?.[at]?.push(await underLoad(way, size))
      }
    }
  }
  for (const { name } of ways) {
    const cells = loads.map((_, at) => {
      const own = rates.get(name)?.[at] ?? []
      const ratio = median(own.map((rate, round) => rate / (rates.get(alone.name)?.[at]?.[round] ?? Number.NaN)))
      return `${median(own).toFixed(1)}  ${ratio.toFixed(3)}x`.padStart(22)
    })
    console.log(`${name.padEnd(24)}${cells.join('')}   ${name.startsWith('paddock') ? '0.98x' : ''}`)
  }
} finally {
  for (const stop of stops.toReversed()) await stop()
  await rm(directory, { recursive: true })
}

/** A `paddock serve` of its own before the engine. */
async function paddock(strategy: string, engine: string): Promise<Way> {
  const config = join(directory, `${strategy}.config.ts`)
  await writeFile(config, `export default { session: { strategy: '${strategy}' } }\n`)
  const places = ['--data', join(directory, strategy), '--config', config]
  const child = spawn(
    join(root, 'paddock'),
    [...places, '--json', 'serve', '--engine', engine, '--port', '0', '--control-port', '0'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  stops.push(async () => {
    child.kill('SIGINT')
    await once(child, 'exit')
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { type, env } = JSON.parse(line) as { type?: string; env: Readonly<Record<string, string>> }
    if (type !== 'ready') continue
    child.stdout.resume()
    const client = new OpenAI({ apiKey: env['OPENAI_API_KEY'], baseURL: env['OPENAI_BASE_URL'], maxRetries: 0 })
    return { name: `paddock, ${strategy}`, client }
  }
  throw new Error('paddock serve ended before it was ready')
}

/** Tokens per second of so many clients at once. */
async function underLoad({ client, asks }: Way, size: number): Promise<number> {
  const began = performance.now()
  await Promise.all(
    Array.from({ length: size }, async () => {
      for (let answer = 0; answer < answers(size); answer += 1) {
        asked += 1
        const messages = [{ role: 'user' as const, content: `Tell me a story about the number ${asked}.` }]
        const body = { model: 'smollm2', messages, stream: true as const, temperature: 1, max_tokens: tokens, ...asks }
        const usage = { stream_options: { include_usage: true }, min_tokens: tokens }
        let told = 0
        for await (const event of await client.chat.completions.create({ ...body, ...usage })) {
          told = event.usage?.completion_tokens ?? told
        }
        if (told !== tokens) throw new Error(`an answer has ${told} tokens`)
      }
    }),
  )
  return (size * answers(size) * tokens * 1000) / (performance.now() - began)
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
