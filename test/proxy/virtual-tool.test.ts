/** What a virtual tool says, from a record and from a model, and that a model's calls at Paddock's own proxy are kept and never trained. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { environmentKit } from '../../src/envs/index.ts'
import type { Box } from '../../src/sandbox/index.ts'
import { createProxy, openaiEngine, type Proxy } from '../../src/proxy/index.ts'
import type { Store } from '../../src/trajectory/index.ts'
import { useStore } from '../fixtures/use-store.ts'

const { virtualTool, makeTask } = environmentKit
const task = makeTask({ name: 't', environment: 'e', instruction: 'i', split: 'train', data: {}, source: '' })
// None of these tools goes near a box.
const nowhere = null as unknown as Box
const context = (id: string) => ({ task, attempt: { id }, box: nowhere, signal: new AbortController().signal })
const tool = {
  name: 'weather',
  description: 'Says the weather of a town.',
  input: z.object({ town: z.string(), day: z.int().default(0) }),
}

let answer: (
  messages: readonly { role: string; content: string }[],
) => { content: string; cut?: true } | number | 'none'
let server: Server
let url: string
let store: Store
let proxy: Proxy
let listener: Awaited<ReturnType<Proxy['listen']>>
beforeAll(async () => {
  server = createServer(
    (request, response) =>
      void (async () => {
        const said =
          request.method === 'POST' ? answer(((await json(request)) as { messages: [] }).messages) : { content: '' }
        response.writeHead(typeof said === 'number' ? said : 200, { 'content-type': 'application/json' })
        if (typeof said === 'number') return void response.end('{"error":{"message":"no"}}')
        const finish_reason = said !== 'none' && said.cut === true ? 'length' : 'stop'
        const choices =
          said === 'none' ? [] : [{ index: 0, message: { role: 'assistant', content: said.content }, finish_reason }]
        response.end(
          JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices, usage: { total_tokens: 3 } }),
        )
      })(),
  )
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  store = await useStore()
  proxy = createProxy({ recorder: store.recorder, engine: openaiEngine({ url }) })
  listener = await proxy.listen({ port: 0 })
})
afterAll(async () => {
  await listener.close()
  await proxy.close()
  server.closeAllConnections()
  server.close()
})

it('answers the same arguments as was recorded, in order, each attempt from the beginning', async () => {
  const record = [
    { args: { town: 'Corrin' }, text: 'rain' },
    { args: { town: 'Dunlea' }, text: 'no such town', status: 'error' as const },
    { args: { day: 0, town: 'Corrin' }, text: 'sun' },
    { args: { place: 'of another form' }, text: 'never' },
  ]
  const weather = virtualTool({ ...tool, record })
  const one = context('one')
  const said = []
  for (let i = 0; i < 3; i += 1) said.push((await weather.run(one, { town: 'Corrin' })).text)
  expect(said).toEqual(['rain', 'sun', 'sun'])
  expect(await weather.run(context('two'), { town: 'Corrin', day: 0 })).toMatchObject({ status: 'ok', text: 'rain' })
  expect(await weather.run(one, { town: 'Dunlea' })).toMatchObject({ status: 'error', text: 'no such town' })
  expect(await weather.run(one, { town: 'Corrin', day: 1 })).toMatchObject({
    status: 'error',
    text: expect.stringContaining('Nothing is known'),
  })
  expect(await weather.run(one, { place: 'x' })).toMatchObject({
    status: 'error',
    text: expect.stringContaining('Invalid'),
  })
})

it('asks a session of role teacher for the rest, which keeps the calls and trains none', async () => {
  const { session, key, baseUrl } = await proxy.openSession({ role: 'teacher' })
  const model = { baseUrl: baseUrl(listener.origin), apiKey: key, model: 'm', instructions: 'It never snows.' }
  const weather = virtualTool({ ...tool, record: [{ args: { town: 'Corrin' }, text: 'rain' }], model })
  const seen: (readonly { role: string; content: string }[])[] = []
  answer = (messages) => {
    seen.push(messages)
    return { content: `fog ${messages.length}` }
  }
  const one = context('one')
  expect((await weather.run(one, { town: 'Corrin' })).facts).toEqual({ answered_by: 'record' })
  expect(await weather.run(one, { town: 'Dunlea' })).toMatchObject({
    text: 'fog 2',
    facts: { answered_by: 'model', model: 'm' },
  })
  expect((await weather.run(one, { town: 'Aldmoor' })).text).toBe('fog 4')
  expect((await weather.run(context('two'), { town: 'Aldmoor' })).text).toBe('fog 2')
  expect(seen[0]?.[0]?.content).toMatch(/weather.*\n[^]*It never snows/)
  expect(seen[1]?.map(({ content }) => content).slice(1)).toEqual([
    '{"town":"Dunlea","day":0}',
    'fog 2',
    '{"town":"Aldmoor","day":0}',
  ])
  const log = await store.recorder.session(session.id)
  expect(log.session.role).toBe('teacher')
  expect(log.calls).toHaveLength(3)
})

it('a model that is out or gives no answer is a fault of infrastructure', async () => {
  const model = { baseUrl: url, apiKey: 'x', model: 'm', tries: 1 }
  const weather = virtualTool({ ...tool, model })
  for (const [said, why] of [
    [500, /did not answer/],
    ['none', /gave no answer/],
  ] as const) {
    answer = () => said
    const outcome = await weather.run(context('one'), { town: 'Corrin' })
    expect(outcome).toMatchObject({ status: 'infra', fault: { code: 'VIRTUAL_TOOL_FAILED', family: 'infra' } })
    expect(outcome.text).toMatch(why)
  }
  expect(() => virtualTool(tool)).toThrow(/Nothing answers for the virtual tool weather/)
})

it('no argument makes a fault of infrastructure: answers are cut or empty, large arguments and long pasts are bounded', async () => {
  const weather = virtualTool({ ...tool, model: { baseUrl: url, apiKey: 'x', model: 'm', tries: 1 } })
  const one = context('one')
  answer = () => ({ content: 'rai', cut: true })
  expect(await weather.run(one, { town: 'all towns' })).toMatchObject({
    status: 'ok',
    text: 'rai',
    facts: { cut: 'max_tokens' },
  })
  answer = () => ({ content: '' })
  expect(await weather.run(one, { town: 'say nothing' })).toMatchObject({ status: 'ok', text: '' })
  // A server refuses what does not fit its context.
  let longest = 0
  answer = (messages) => {
    const size = messages.reduce((sum, { content }) => sum + content.length, 0)
    longest = Math.max(longest, size)
    return size > 100_000 ? 400 : { content: 'x'.repeat(9000) }
  }
  expect((await weather.run(one, { town: 'y'.repeat(17_000) })).status).toBe('error')
  for (let i = 0; i < 12; i += 1) {
    expect((await weather.run(one, { town: `${i}`.repeat(5000) })).status).toBe('ok')
  }
  expect(longest).toBeGreaterThan(60_000)
})
