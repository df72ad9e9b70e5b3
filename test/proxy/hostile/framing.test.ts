/** Engines that break off, change the protocol or nest without end: each is told as what it is, and nothing hangs. */
import { createServer, type Server, type Socket } from 'node:net'
import { once } from 'node:events'
import { Agent } from 'undici'
import { describe, expect, it } from 'vitest'
import { vllmEngine } from '../../../src/proxy/index.ts'
import { hello, startProxy } from '../support.ts'
import { honest, json } from './shapes.ts'

/** A server that writes these bytes to whoever asks it anything, and then closes or waits. */
async function saying(bytes: string, then: 'closes' | 'waits'): Promise<AsyncDisposable & { readonly url: string }> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => (then === 'closes' ? socket.end(bytes) : socket.write(bytes)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const whole = (body: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const stream = (payloads: readonly string[]) =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${payloads.map((one) => `data: ${one}\n\n`).join('')}`
const upgrades = {
  'with its headers': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n',
  'without any': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
}
const deep = '['.repeat(100_000) + ']'.repeat(100_000)
const answer = honest()
const choiceOf = (content: string, more = '') =>
  `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"${more}},"finish_reason":"stop"${content}}]}`

describe('a change of the protocol', () => {
  const ways = Object.keys(upgrades) as (keyof typeof upgrades)[]
  it.each(ways.flatMap((headers) => [false, true].map((given) => ({ headers, given }))))(
    '$headers ends the call as ENGINE_ERROR, over a dispatcher: $given',
    async ({ headers, given }) => {
      await using server = await saying(upgrades[headers], 'waits')
      const dispatcher = given ? new Agent() : null
      await using paddock = await startProxy(server.url, { engine: { ...vllmEngine({ url: server.url }), dispatcher } })
      const session = await paddock.open()
      const reply = await session.post(hello)
      expect([reply.status, JSON.parse(await reply.text()).error.code]).toEqual([502, 'ENGINE_ERROR'])
      expect((await session.log()).calls[0]?.commit?.outcome).toMatchObject({
        kind: 'engine_error',
        code: 'ENGINE_ERROR',
      })
      await paddock.proxy.close()
      await dispatcher?.destroy()
    },
  )

  it.each(ways)('%s hangs neither the question for its models nor the one for what the engine is', async (headers) => {
    await using server = await saying(upgrades[headers], 'waits')
    await using paddock = await startProxy(server.url)
    const session = await paddock.open()
    const models = await fetch(`${session.url}/models`, { headers: { authorization: `Bearer ${session.key}` } })
    expect([models.status, ((await models.json()) as { error: { code: string } }).error.code]).toEqual([
      502,
      'ENGINE_UNREACHABLE',
    ])
    await expect(vllmEngine({ url: server.url }).fingerprint()).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' })
    await paddock.proxy.close()
  })
})

describe('an answer without end in depth', () => {
  it.each([
    ['in a member that nobody knows', whole(choiceOf(`,"extra":${deep}`))],
    ['in its message', whole(choiceOf('', `,"extra":${deep}`))],
    ['in its usage', whole(`${choiceOf('').slice(0, -1)},"usage":${deep}}`)],
    ['that is nothing else', whole(deep)],
    ['in an event', stream([`{"choices":[{"index":0,"delta":{"content":"x","extra":${deep}}}]}`, '[DONE]'])],
    [
      'in the usage of a stream',
      stream([`{"choices":[],"usage":{"completion_tokens":1,"details":${deep}}}`, '[DONE]']),
    ],
    ['in an error of a stream', stream([`{"error":{"message":"x","details":${deep}}}`, '[DONE]'])],
  ])('%s is ENGINE_ERROR', async (_where, reply) => {
    await using server = await saying(reply, 'closes')
    await using paddock = await startProxy(server.url)
    const session = await paddock.open()
    const got = await session.post({ ...hello, stream: reply.includes('event-stream') })
    expect(await got.text()).toContain('"ENGINE_ERROR"')
    expect((await session.log()).calls[0]?.commit?.outcome).toMatchObject({
      kind: 'engine_error',
      code: 'ENGINE_ERROR',
    })
  })

  it.each([false, true])('in the arguments of a call is the text that it is, streamed: %s', async (streamed) => {
    const call = [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: deep } }]
    const body = streamed
      ? stream([
          json({ choices: [{ index: 0, delta: { role: 'assistant', tool_calls: call } }] }),
          json({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }),
          '[DONE]',
        ])
      : whole(choiceOf('', `,"tool_calls":${json(call)}`))
    await using server = await saying(body, 'closes')
    await using paddock = await startProxy(server.url)
    const session = await paddock.open()
    const got = await session.post({ ...hello, stream: streamed })
    expect(got.status).toBe(200)
    expect(await got.text()).toContain(deep)
    expect((await session.log()).calls[0]?.commit?.outcome).toEqual({ kind: 'complete' })
  })
})

describe('an answer that breaks off', () => {
  const events = answer.events.map(json)
  it.each([
    ['before its end', stream(events.slice(0, 3)), 'ENGINE_DIED'],
    ['in an event', stream(events.slice(0, 2)).slice(0, -40), 'ENGINE_DIED'],
    ['with the mark of the end and no finish reason', stream([...events.slice(0, 3), '[DONE]']), 'ENGINE_DIED'],
    ['with the mark of the end alone', stream(['[DONE]']), 'ENGINE_DIED'],
    ['in its body', whole(json(answer.whole)).slice(0, -40), 'ENGINE_DIED'],
    ['into what is no JSON', stream([...events.slice(0, 2), '{"choices":[', '[DONE]']), 'ENGINE_ERROR'],
    [
      'as aborted',
      stream([events[0] ?? '', json({ choices: [{ index: 0, delta: {}, finish_reason: 'abort' }] }), '[DONE]']),
      'ENGINE_DIED',
    ],
    ['as aborted, whole', whole(choiceOf('').replace('"stop"', '"abort"')), 'ENGINE_DIED'],
    ['without a choice', whole('{"choices":[]}'), 'ENGINE_ERROR'],
    ['with a text for its choices', whole('{"choices":"x"}'), 'ENGINE_ERROR'],
  ])('%s is told, and trains nothing', async (_where, reply, code) => {
    await using server = await saying(reply, 'closes')
    await using paddock = await startProxy(server.url)
    const session = await paddock.open()
    const got = await session.post({ ...hello, stream: reply.includes('event-stream') })
    expect(await got.text()).toContain(`"${code}"`)
    expect((await session.log()).calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code })
  })
})
