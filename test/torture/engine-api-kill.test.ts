/** `kill -9` of the proxy under both strategies on both engine APIs, judged by client journal and engine journal. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fsck, openReader, openStore, type SessionLog } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { payloads, script, rawPost, shellTool, startEngine, type EngineProcess } from '../proxy/support.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

const kills = sized(50, 8)
const seed = 20_261_121

interface Target {
  readonly wire: string
  readonly strategy: string
  readonly url: string
  readonly key: string
  readonly session: string
}

/** An answer that its client got to the end, from the bytes it got and nothing else. */
interface Acted {
  readonly session: string
  readonly callId: string
  readonly content: string
  readonly tools: readonly string[]
}

let vllm: EngineProcess
let sglang: EngineProcess
let directory: string
beforeAll(async () => {
  directory = tempDir()
  const steps = [
    { shell: 'rm -rf build && make' },
    { shell: 'make test' },
    { say: 'one two three four five six seven' },
  ]
  ;[vllm, sglang] = await Promise.all([
    startEngine('--tokens-per-second', '400', '--journal', join(directory, 'vllm.jsonl')),
    startEngine('--tokens-per-second', '400', '--wire', 'sglang', '--journal', join(directory, 'sglang.jsonl')),
  ])
  for (const engine of [vllm, sglang]) await engine.control('/scripts', script('Act.', steps))
})
afterAll(async () => {
  await Promise.all([vllm.stop(), sglang.stop()])
})

it(
  `${kills} kills, seed ${seed}: what clients could act on is stored as it was sampled`,
  { timeout: Math.max(900_000, kills * 30_000) },
  async () => {
    const file = join(directory, 'client.jsonl')
    const fd = openSync(file, 'a')
    const random = randomFrom(seed)
    const targets: Target[] = []
    for (let round = 0; round < kills; round += 1) {
      const child = spawn(
        process.execPath,
        ['test/kill/engine-api-runner.ts', join(directory, 'data'), vllm.url, sglang.url],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      const died = once(child, 'exit').then(([code]) => {
        throw new Error(`the runner ended with ${String(code)} before it was ready`)
      })
      const ready = once(createInterface({ input: child.stdout }), 'line')
      const [line] = await Promise.race([ready, died])
      died.catch(() => {})
      const here = JSON.parse(String(line)) as Target[]
      targets.push(...here)
      const stop = new AbortController()
      // So many answers, then a moment more: a busy machine is killed at the same places as an idle one.
      const enough = Promise.withResolvers<void>()
      let left = Math.floor(random() * 24)
      const answered = (entry: Acted): void => {
        writeSync(fd, `${JSON.stringify(entry)}\n`)
        fsyncSync(fd)
        left -= 1
        if (left <= 0) enough.resolve()
      }
      const load = here.flatMap((target) => [0, 1].map((which) => converse(target, which, answered, stop.signal)))
      await Promise.race([enough.promise, Promise.all(load)])
      await new Promise((resolve) => setTimeout(resolve, Math.floor(random() * 60)))
      child.kill('SIGKILL')
      await once(child, 'exit')
      stop.abort()
      await Promise.all(load)
    }
    closeSync(fd)
    // Opening once settles the last victim's calls.
    await (await openStore(join(directory, 'data'))).close()
    expect((await fsck(join(directory, 'data'))).problems).toEqual([])

    const acted = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Acted)
    const truth = await generations()
    await using reader = await openReader(join(directory, 'data'))
    const met = new Map<string, number>()
    for (const target of targets) {
      const log = await reader.recorder.session(target.session)
      expect(new Set(log.calls.map(({ intent }) => intent.strategy))).toEqual(
        new Set(log.calls.length === 0 ? [] : [target.strategy]),
      )
      for (const entry of acted.filter(({ session }) => session === target.session)) {
        expectStored(log, entry, truth)
        const key = `${target.wire} ${target.strategy}`
        met.set(key, (met.get(key) ?? 0) + 1)
      }
      // An append-only conversation never forks under splice, whatever was cut off beside it.
      if (target.strategy === 'splice') {
        expect(log.calls.flatMap(({ commit }) => commit?.forks.map(({ cause }) => cause) ?? [])).toEqual([])
      }
    }
    expect([...met.keys()].toSorted()).toEqual(['sglang record', 'sglang splice', 'vllm record', 'vllm splice'])
    expect(Math.min(...met.values())).toBeGreaterThan(kills / 2)
  },
)

/** Message, ids and context of a call that a client acted on. */
function expectStored(log: SessionLog, entry: Acted, truth: ReadonlyMap<string, Generation>): void {
  const call = log.calls.find(({ intent }) => intent.id === entry.callId)
  const message = JSON.parse(call?.commit?.choices[0]?.message ?? '{}')
  expect(message.content ?? '').toBe(entry.content)
  const calls: { function: { arguments: string } }[] = message.tool_calls ?? []
  expect(calls.map((one) => one.function.arguments)).toEqual(entry.tools)
  const sampled = log.segments.find(({ id }) => id === call?.commit?.choices[0]?.segmentId)
  const generation = truth.get(entry.callId)
  expect([...(sampled?.tokens ?? [])]).toEqual(generation?.tokenIds)
  expect([...(sampled?.logprobs ?? [])]).toEqual(generation?.logprobs.map(Math.fround))
  const parent = sampled?.parent ?? null
  expect(parent === null ? [] : path(log, parent.segmentId, parent.offset)).toEqual(generation?.promptTokenIds)
}

function path(log: SessionLog, id: string, offset: number): number[] {
  const segment = log.segments.find((one) => one.id === id)
  const parent = segment?.parent ?? null
  const before = parent === null ? [] : path(log, parent.segmentId, parent.offset)
  return [...before, ...(segment?.tokens.subarray(0, offset) ?? [])]
}

interface Generation {
  readonly promptTokenIds: readonly number[]
  readonly tokenIds: readonly number[]
  readonly logprobs: readonly number[]
}

/** The engines' own record by call. */
async function generations(): Promise<ReadonlyMap<string, Generation>> {
  const found = new Map<string, Generation>()
  for (const name of ['vllm.jsonl', 'sglang.jsonl']) {
    for (const text of readFileSync(join(directory, name), 'utf8').split('\n')) {
      if (!text.includes('"generation"')) continue
      const line = JSON.parse(text) as {
        kind: string
        promptTokenIds: number[]
        choices: { tokenIds: number[]; logprobs: number[] }[]
        headers: Record<string, string>
      }
      const [choice] = line.choices
      if (line.kind !== 'generation' || choice === undefined) continue
      found.set(line.headers['x-request-id'] ?? '', { promptTokenIds: line.promptTokenIds, ...choice })
    }
  }
  return found
}

/** One conversation after another, each turn going on from what came, until the proxy is gone. */
async function converse(
  target: Target,
  which: number,
  answered: (entry: Acted) => void,
  stop: AbortSignal,
): Promise<void> {
  for (let number = 0; !stop.aborted; number += 1) {
    const messages: object[] = [{ role: 'user', content: `Conversation ${which}/${number}.\nAct.` }]
    for (let turn = 0; turn < 3 && !stop.aborted; turn += 1) {
      const stream = (which + turn) % 2 === 0
      const body = { model: 'scripted-hermes', messages, tools: [shellTool], stream }
      const entry = await oneCall(target, body, stream).catch(() => null)
      if (entry === null) return
      answered({ session: target.session, ...entry })
      const calls = entry.tools.map((text, at) => ({
        id: `call_${turn}_${at}`,
        type: 'function',
        function: { name: 'shell', arguments: text },
      }))
      messages.push({ role: 'assistant', content: entry.content, ...(calls.length === 0 ? {} : { tool_calls: calls }) })
      for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: `done ${turn}` })
    }
  }
}

async function oneCall(target: Target, body: object, stream: boolean): Promise<Omit<Acted, 'session'>> {
  const answer = await rawPost(`${target.url}/chat/completions`, JSON.stringify(body), {
    authorization: `Bearer ${target.key}`,
  })
  const callId = String(answer.response.headers['x-request-id'])
  const text = await answer.text()
  if (!stream) {
    const { message } = JSON.parse(text).choices[0]
    const calls: { function: { arguments: string } }[] = message.tool_calls ?? []
    return { callId, content: message.content ?? '', tools: calls.map((call) => call.function.arguments) }
  }
  if (!text.includes('[DONE]')) throw new Error('cut off')
  let content = ''
  const tools: string[] = []
  for (const event of payloads(text)) {
    const [choice] = event['choices'] as {
      delta: { content?: string; tool_calls?: { index: number; function: { arguments?: string } }[] }
    }[]
    content += choice?.delta.content ?? ''
    for (const call of choice?.delta.tool_calls ?? [])
      tools[call.index] = (tools[call.index] ?? '') + (call.function.arguments ?? '')
  }
  return { callId, content, tools }
}
