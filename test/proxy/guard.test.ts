import { createServer, type IncomingMessage, request as httpRequest, type Server, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, rawPost, startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url, { limits: { maxBodyBytes: 64 * 1024, maxHeaderBytes: 8192 } })
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const errorOf = async (answer: { text(): Promise<string> }) => JSON.parse(await answer.text()).error
const post = (path: string, headers: Record<string, string>, body: string | Buffer = JSON.stringify(hello)) =>
  rawPost(`${paddock.origin}${path}`, body, { 'content-type': 'application/json', ...headers })

describe('who may speak', () => {
  it.each(['authorization', 'x-api-key', 'x-goog-api-key'])(
    'takes the key in %s, with or without the session in the URL',
    async (name) => {
      const session = await paddock.open()
      const headers = { [name]: name === 'authorization' ? `Bearer ${session.key}` : session.key }
      for (const path of [`/s/${session.id}/v1/chat/completions`, '/v1/chat/completions']) {
        const answer = await post(path, headers)
        expect(answer.status).toBe(200)
        await answer.text()
      }
      expect((await session.log()).calls).toHaveLength(2)
    },
  )

  it('refuses with a code, the fix, and the OpenAI shape', async () => {
    const [one, two, closed] = [await paddock.open(), await paddock.open(), await paddock.open()]
    await paddock.proxy.closeSession(closed.id)
    const route = (id: string) => `/s/${id}/v1/chat/completions`
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
    const cases = [
      [route(one.id), {}, 401, 'AUTH_KEY_UNKNOWN'],
      [route(one.id), bearer('wrong'), 401, 'AUTH_KEY_UNKNOWN'],
      ['/v1/chat/completions', bearer('wrong'), 401, 'AUTH_KEY_UNKNOWN'],
      [route('nobody'), bearer('wrong'), 401, 'AUTH_KEY_UNKNOWN'],
      [route(one.id), bearer(two.key), 403, 'AUTH_KEY_MISMATCH'],
      [route(one.id), { ...bearer(one.key), 'x-api-key': two.key }, 403, 'AUTH_KEY_MISMATCH'],
      [route('nobody'), bearer(one.key), 404, 'SESSION_UNKNOWN'],
      [route(closed.id), bearer(closed.key), 409, 'SESSION_CLOSED'],
      [`/s/${one.id}/v1/audio/speech`, bearer(one.key), 404, 'ROUTE_DENIED'],
      [`/s/${one.id}/tokenize`, bearer(one.key), 404, 'ROUTE_DENIED'],
      [`/s/${one.id}/v1/models/../../pause`, bearer(one.key), 404, 'ROUTE_DENIED'],
      [`/s/${one.id}/v1/chat/completions/`, bearer(one.key), 404, 'ROUTE_DENIED'],
    ] as const
    for (const [path, headers, status, code] of cases) {
      const answer = await post(path, { ...headers })
      expect([path, answer.status]).toEqual([path, status])
      expect(answer.response.headers['x-should-retry']).toBe('false')
      expect(await errorOf(answer)).toMatchObject({
        code,
        message: expect.stringContaining('Fix: '),
        type: expect.any(String),
      })
    }
    expect((await one.log()).calls).toHaveLength(0)
  })

  it('stores the digest of a key and never the key, nor any credential header', async () => {
    const session = await paddock.open()
    await (await session.post(hello, { cookie: 'a=b', 'x-api-key': session.key })).text()
    const stored = JSON.stringify(await session.log(), (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString() : value,
    )
    expect(stored).not.toContain(session.key)
    expect(stored).not.toContain('a=b')
    expect(stored).toContain('"content-type":"application/json"')
  })

  it('serves a model socket without a key and refuses it the session of another', async () => {
    const [own, other] = [await paddock.open(), await paddock.open()]
    const handler = paddock.proxy.sessionHandler(own.id)
    const server = createServer((request: IncomingMessage, response: ServerResponse) =>
      handler.request(request, response),
    )
    const origin = await listen(server)
    const ask = (path: string, headers: Record<string, string> = {}) =>
      rawPost(`${origin}${path}`, JSON.stringify(hello), headers)
    expect((await ask('/v1/chat/completions')).status).toBe(200)
    expect((await ask('/v1/chat/completions', { authorization: 'Bearer placeholder' })).status).toBe(200)
    expect((await ask(`/s/${own.id}/v1/chat/completions`)).status).toBe(200)
    expect((await ask('/v1/chat/completions', { authorization: `Bearer ${other.key}` })).status).toBe(403)
    expect((await ask(`/s/${other.id}/v1/chat/completions`)).status).toBe(403)
    server.close()
    server.closeAllConnections()
    expect((await own.log()).calls).toHaveLength(3)
    expect((await other.log()).calls).toHaveLength(0)
  })

  it('opens a session per native id in open mode, and only on loopback', async () => {
    await using open = await startProxy(engine.url, { openMode: true })
    await expect(open.proxy.listen({ host: '0.0.0.0' })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    for (const native of ['a', 'b', 'a']) {
      const headers = { 'x-session-id': native, authorization: 'Bearer anything' }
      const answer = await rawPost(`${open.origin}/v1/chat/completions`, JSON.stringify(hello), headers)
      expect(answer.status).toBe(200)
      await answer.text()
    }
    expect(open.events.filter((event) => event.type === 'session')).toHaveLength(2)
  })

  it.each([
    ['a page of another origin', { origin: 'https://pages.example' }, 403],
    ['a page of another port of this machine', { origin: 'http://127.0.0.1:1' }, 403],
    ['a page without an origin', { origin: 'null' }, 403],
    ['a page that sends no Origin', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }, 403],
    ['a name that was made to lead here', { host: 'pages.example:PORT', origin: 'http://pages.example:PORT' }, 403],
    ['such a name, without Origin', { host: 'pages.example:PORT' }, 403],
    ['a name that begins like loopback', { host: '127.0.0.1.pages.example:PORT' }, 403],
    ['a name that ends like loopback', { host: 'pages.localhost.example' }, 403],
    ['another address', { host: '192.0.2.1:PORT' }, 403],
    ['loopback by address', { host: '127.0.0.1:PORT' }, 200],
    ['loopback by name', { host: 'LocalHost:PORT' }, 200],
    ['loopback of IPv6', { host: '[::1]:PORT' }, 200],
    [
      'a page of its own',
      { host: '127.0.0.1:PORT', origin: 'http://127.0.0.1:PORT', 'sec-fetch-site': 'same-origin' },
      200,
    ],
  ])('in open mode answers %s: %j with %i, and one with a key always', async (_, given, status) => {
    await using open = await startProxy(engine.url, { openMode: true })
    const { port } = new URL(open.origin)
    const asked = Object.entries(given).map(([name, value]) => [name, value.replaceAll('PORT', port)] as const)
    const ask = async (method: string, path: string, more: Record<string, string> = {}) => {
      const out = httpRequest({
        host: '127.0.0.1',
        port,
        method,
        path,
        headers: { ...Object.fromEntries(asked), ...more },
      })
      out.end(method === 'POST' ? JSON.stringify(hello) : undefined)
      const [response] = (await once(out, 'response')) as [IncomingMessage]
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      return { status: response.statusCode, text: Buffer.concat(chunks).toString() }
    }
    const keyed = await open.open()
    const answers = [await ask('POST', '/v1/chat/completions'), await ask('GET', '/v1/models')]
    for (const answer of answers) {
      expect(answer.status).toBe(status)
      if (status === 403) expect(JSON.parse(answer.text).error).toMatchObject({ code: 'ORIGIN_REFUSED' })
    }
    const sessions = open.events.filter((event) => event.type === 'session')
    expect(sessions).toHaveLength(status === 200 ? 2 : 1)
    expect((await ask('POST', '/v1/chat/completions', { authorization: `Bearer ${keyed.key}` })).status).toBe(200)
  })
})

describe('what may be sent', () => {
  it.each([
    ['not json', 400, 'BODY_INVALID_JSON'],
    ['{"messages":[', 400, 'BODY_INVALID_JSON'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 400, 'BODY_INVALID_JSON'],
    [`{"messages":[{"role":"user","content":${'['.repeat(5000)}${']'.repeat(5000)}}]}`, 400, 'BODY_INVALID_JSON'],
    ['[]', 400, 'BODY_INVALID_SHAPE'],
    ['{"messages":[]}', 400, 'BODY_INVALID_SHAPE'],
    ['{"messages":[{"role":"user"}],"stream":"yes"}', 400, 'BODY_INVALID_SHAPE'],
    ['{"messages":[{"role":"user"}],"n":0}', 400, 'BODY_INVALID_SHAPE'],
    ['x'.repeat(65 * 1024), 413, 'BODY_TOO_LARGE'],
  ])('refuses %#', async (body, status, code) => {
    const session = await paddock.open()
    const answer = await post(`/s/${session.id}/v1/chat/completions`, { authorization: `Bearer ${session.key}` }, body)
    expect(answer.status).toBe(status)
    expect(await errorOf(answer)).toMatchObject({ code })
    expect((await session.log()).calls).toHaveLength(0)
  })

  it('counts a body without a declared length while it comes', async () => {
    const session = await paddock.open()
    const out = httpRequest(`${session.url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.key}`, 'transfer-encoding': 'chunked' },
    })
    out.on('error', () => {})
    for (let i = 0; i < 20; i += 1) out.write('x'.repeat(8192))
    const [response] = (await once(out, 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(413)
    out.destroy()
  })

  it('takes a compressed body and counts its decoded size', async () => {
    const session = await paddock.open()
    const headers = { authorization: `Bearer ${session.key}`, 'content-encoding': 'gzip' }
    expect((await post('/v1/chat/completions', headers, gzipSync(JSON.stringify(hello)))).status).toBe(200)
    expect((await post('/v1/chat/completions', headers, gzipSync('x'.repeat(1024 * 1024)))).status).toBe(413)
  })

  it.each(['rot13', 'constructor', 'toString', '__proto__', 'gzip;q=1'])(
    'refuses a body in %s with one clear error, unread',
    async (encoding) => {
      const session = await paddock.open()
      const headers = { authorization: `Bearer ${session.key}`, 'content-encoding': encoding }
      const refused = await post('/v1/chat/completions', headers, JSON.stringify(hello))
      expect(refused.status).toBe(415)
      expect(JSON.parse(await refused.text())).toMatchObject({
        error: { code: 'BODY_ENCODING_UNKNOWN', message: expect.stringMatching(/not known.*gzip, .*zstd/) },
      })
      expect((await session.log()).calls).toEqual([])
    },
  )

  it('refuses WebSocket with 426', async () => {
    const session = await paddock.open()
    const headers = { authorization: `Bearer ${session.key}`, upgrade: 'websocket', connection: 'upgrade' }
    const answer = await post('/v1/responses', headers)
    expect(answer.status).toBe(426)
    expect(await errorOf(answer)).toMatchObject({ code: 'STREAM_UPGRADE_REFUSED' })
  })

  it.each([
    ['headers that never end', 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n', '408'],
    [
      'a body that never ends',
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: KEY\r\ncontent-length: 10\r\n\r\n{',
      '408',
    ],
    ['headers that are too large', `GET /v1/models HTTP/1.1\r\nhost: x\r\na: ${'x'.repeat(9000)}\r\n\r\n`, '431'],
    ['what is not HTTP', 'hello\r\n\r\n', '400'],
  ])('answers %s and closes the connection', async (_what, bytes, status) => {
    await using impatient = await startProxy(engine.url, {
      limits: { headersTimeoutMs: 200, requestTimeoutMs: 300, maxHeaderBytes: 8192 },
    })
    const session = await impatient.open()
    const socket = connect(Number(new URL(impatient.origin).port), '127.0.0.1')
    socket.write(bytes.replace('KEY', session.key))
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    await once(socket, 'close')
    expect(Buffer.concat(chunks).toString()).toContain(`HTTP/1.1 ${status} `)
    expect((await session.log()).calls).toHaveLength(0)
  })
})

describe('what a session may use', () => {
  it('refuses and records the call that goes over budget', async () => {
    const session = await paddock.open({ policy: { budget: { maxCalls: 1, maxSampledTokens: null, maxWallMs: null } } })
    expect((await session.post(hello)).status).toBe(200)
    const refused = await session.post({ ...hello, stream: true })
    expect(refused.status).toBe(429)
    expect(refused.response.headers['x-should-retry']).toBe('false')
    expect(await errorOf(refused)).toMatchObject({
      code: 'BUDGET_EXHAUSTED',
      message: expect.stringContaining('maxCalls'),
    })
    const { calls } = await session.log()
    expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['complete', 'refused'])
    expect(paddock.events.some((event) => event.type === 'budget' && event.sessionId === session.id)).toBe(true)
  })

  it('counts sampled tokens', async () => {
    const session = await paddock.open({ policy: { budget: { maxCalls: null, maxSampledTokens: 2, maxWallMs: null } } })
    expect((await session.post(hello)).status).toBe(200)
    expect((await session.post(hello)).status).toBe(429)
  })

  it('lets as many calls to the engine as configured, the others wait and are counted', async () => {
    await using narrow = await startProxy(engine.url, { limits: { maxInFlight: 2, maxQueued: 1 } })
    const session = await narrow.open()
    const held = { kind: 'stall', at: 'before_first_byte', seconds: 600, count: 0, match: { session: session.id } }
    await engine.fault(held)
    const answers = [1, 2, 3].map(() => session.post(hello))
    while (narrow.proxy.stats().queued < 1) await nextTurn()
    const full = await session.post(hello)
    expect(full.status).toBe(503)
    expect(await errorOf(full)).toMatchObject({ code: 'PROXY_OVERLOADED' })
    expect(narrow.proxy.stats()).toMatchObject({ inFlight: 2, queued: 1, maxInFlight: 2 })
    await fetch(`${engine.url}/control/faults`, { method: 'DELETE' })
    expect((await Promise.all(answers)).map((answer) => answer.status)).toEqual([200, 200, 200])
    await narrow.proxy.drain()
    expect(narrow.proxy.stats()).toMatchObject({ inFlight: 0, queued: 0, calls: 3, draining: true })
    expect((await session.post(hello)).status).toBe(503)
  })
})

describe('the list of models', () => {
  it('gives the models without showing the engine our key', async () => {
    const session = await paddock.open()
    const models = await session.client.models.list()
    expect(models.data.map((model) => model.id)).toEqual(['scripted-hermes'])
  })

  it('asks the engine in its own name, and says that an engine died over its list', async () => {
    const asked: IncomingMessage[] = []
    const fake = createServer((request, response) => {
      asked.push(request)
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.destroy())
    })
    await using over = await startProxy(await listen(fake))
    const session = await over.open()
    asked.length = 0
    const headers = { authorization: `Bearer ${session.key}`, cookie: 'secret=1' }
    const models = await fetch(`${session.url}/models`, { headers })
    expect([models.status, await models.json()]).toMatchObject([502, { error: { code: 'ENGINE_UNREACHABLE' } }])
    expect(asked[0]?.headers.authorization).toBeUndefined()
    expect(asked[0]?.headers.cookie).toBeUndefined()
    fake.close()
    fake.closeAllConnections()
  })

  it('says that the engine is down', async () => {
    await using down = await startProxy('http://127.0.0.1:1')
    const session = await down.open()
    const headers = { authorization: `Bearer ${session.key}` }
    const models = await fetch(`${session.url}/models`, { headers })
    expect(models.status).toBe(502)
    expect((await models.json()) as object).toMatchObject({ error: { code: 'ENGINE_UNREACHABLE' } })
    for (const stream of [false, true]) {
      const chat = await session.post({ ...hello, stream })
      expect(chat.status).toBe(502)
      expect(await errorOf(chat)).toMatchObject({ code: 'ENGINE_UNREACHABLE' })
    }
    const { calls } = await session.log()
    expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['engine_error', 'engine_error'])
  })
})

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}
