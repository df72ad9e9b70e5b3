/** A proxy that is killed again and again while harnesses work: each gets to its end, on one path. */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildRows, fsck, openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { revivingProxy } from '../kill/reviving.ts'
import { script, shellTool, startEngine, type EngineProcess } from '../proxy/support.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

const seed = 20_261_122
const harnesses = 8
const turns = sized(40, 16)
const task = 'Work through the list.'

let engine: EngineProcess
let directory: string
beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine('--tokens-per-second', '200')
  const steps = Array.from({ length: turns }, (_, n) => ({ shell: `step ${n} of the list` }))
  await engine.control('/scripts', script(task, [...steps, { say: 'Done.' }]))
})
afterAll(async () => {
  await engine.stop()
})

/** A harness that asks again, marked as its SDK marks it, until it has an answer. */
async function work(client: OpenAI, stream: boolean, answered: () => void): Promise<number> {
  const messages: OpenAI.Chat.Completions.ChatCompletionMessageParam[] = [{ role: 'user', content: task }]
  let retries = 0
  for (;;) {
    const body = { model: 'scripted-hermes', messages, tools: [shellTool] }
    let message: OpenAI.Chat.Completions.ChatCompletionMessage | undefined
    for (let tries = 0; message === undefined; tries += 1) {
      const options = { headers: tries === 0 ? {} : { 'x-stainless-retry-count': String(tries) } }
      try {
        const whole = stream
          ? await client.chat.completions.stream(body, options).finalChatCompletion()
          : await client.chat.completions.create(body, options)
        message = whole.choices[0]?.message
      } catch (error) {
        // The connection broke, or nobody listens yet.
        if (!(error instanceof OpenAI.APIConnectionError) && !/terminated|aborted|ended/.test(String(error)))
          throw error
        retries += 1
        await setTimeout(20)
      }
    }
    answered()
    messages.push(message)
    const calls = message.tool_calls ?? []
    if (calls.length === 0) return retries
    for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: 'ok' })
  }
}

it(`${harnesses} harnesses of ${turns} turns each over kill -9 and restarts`, async () => {
  console.log(`seed ${seed}`)
  const strategies = Array.from({ length: harnesses }, (_, n) => (n % 2 === 0 ? 'record' : 'splice'))
  const data = join(directory, 'data')
  let runner = await revivingProxy(data, engine.url, 0, ...strategies)
  const { port, sessions } = runner
  let answers = 0
  let working = harnesses
  const heard = new Set<() => void>()
  const ends = sessions.map(async ({ id, key }, n) => {
    const client = new OpenAI({ apiKey: key, baseURL: `http://127.0.0.1:${port}/s/${id}/v1`, maxRetries: 0 })
    const retries = await work(client, n % 4 < 2, () => {
      answers += 1
      for (const hear of heard) hear()
    })
    working -= 1
    for (const hear of heard) hear()
    return retries
  })
  const random = randomFrom(seed)
  let kills = 0
  while (working > 0) {
    // After some further answers, however slow the machine is, and a moment that lies anywhere in the next ones.
    const until = answers + 1 + Math.floor(random() * 2 * harnesses)
    while (answers < until && working > 0) await new Promise<void>((resolve) => heard.add(resolve))
    if (working === 0) break
    await setTimeout(random() * 60)
    await runner.kill()
    kills += 1
    runner = await revivingProxy(data, engine.url, port)
  }
  const retries = await Promise.all(ends)
  await runner.kill()
  expect(kills).toBeGreaterThan(turns / 4)
  expect(retries.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)

  {
    await using store = await openStore(data)
    for (const { id } of sessions) {
      const log = await store.recorder.session(id)
      expect(log.calls.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
      const { rows } = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 't' })
      expect(rows).toHaveLength(1)
      const leaf = log.calls.find(({ intent }) => intent.id === rows[0]?.leafCallId)
      const last = await engine.generation(leaf?.intent.id)
      expect([...(rows[0]?.tokens ?? [])]).toEqual([...last.promptTokenIds, ...(last.choices[0]?.tokenIds ?? [])])
      const answersInRow = rows[0]?.segments.filter(({ origin }) => origin === 'sampled')
      expect(answersInRow?.map(({ trained }) => trained)).toEqual(Array.from({ length: turns + 1 }, () => true))
    }
  }
  expect((await fsck(data)).problems).toEqual([])
})

/** Mulberry32. */
