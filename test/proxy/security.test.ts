import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { serve } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { keyHeader, type Lab, type LabRollout, openLab, post } from '../lab/lab.ts'
import { dialects } from '../lab/official.ts'
import { type DialectName, type Json, speakerOf } from '../lab/speaker.ts'

/** What hostile clients try, at the listener that they can reach. */
const maxBodyBytes = 256 * 1024

let lab: Lab
let rollout: LabRollout
beforeAll(async () => {
  lab = await openLab({ limits: { maxBodyBytes } })
  rollout = await lab.rollout()
})
afterAll(() => lab[Symbol.asyncDispose]())

/** A request of each dialect, and the path that it goes to. */
function requestOf(dialect: DialectName, text = 'Say hello.'): { readonly path: string; readonly body: Json } {
  const speaker = speakerOf(dialect, 'Take care.')
  speaker.user(text)
  return speaker.request({ model: lab.model, stream: false, maxTokens: 50, tools: [] })
}

/** The one error shape of each dialect. */
const shapes = {
  chat: { error: { message: expect.stringContaining('Fix: '), code: expect.any(String), type: expect.any(String) } },
  responses: { error: { message: expect.stringContaining('Fix: '), code: expect.any(String) } },
  messages: { type: 'error', error: { type: expect.any(String), message: expect.stringContaining('Fix: ') } },
  gemini: {
    error: { code: expect.any(Number), message: expect.stringContaining('Fix: '), status: expect.any(String) },
  },
} as const

/** Sends bytes and gives everything that comes back until the other side closes. */
async function raw(bytes: string | Buffer): Promise<string> {
  const socket = connect(Number(new URL(lab.origin).port), '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.write(bytes)
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}

describe('request smuggling', () => {
  const line = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n'
  const inner = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: KEY\r\ncontent-length: 2\r\n\r\n{}'
  const cases: readonly (readonly [string, string])[] = [
    [
      'content-length and transfer-encoding',
      `${line}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    ],
    [
      'transfer-encoding and content-length',
      `${line}transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n${inner}`,
    ],
    ['two content-lengths', `${line}content-length: 2\r\ncontent-length: 90\r\n\r\n{}${inner}`],
    ['two equal content-lengths', `${line}content-length: 2\r\ncontent-length: 2\r\n\r\n{}${inner}`],
    ['a list of content-lengths', `${line}content-length: 2, 90\r\n\r\n{}${inner}`],
    ['a signed content-length', `${line}content-length: +2\r\n\r\n{}${inner}`],
    ['a blank before the colon', `${line}transfer-encoding : chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['an encoding behind chunked', `${line}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${inner}`],
    ['an unknown transfer encoding', `${line}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a folded header', `${line}transfer-encoding:\r\n chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n${inner}`],
    ['bare line feeds', `${line}a: b\ncontent-length: 2\n\n{}${inner}`],
    ['a bare line feed before a header', `${line}a: b\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a chunk size that is no number', `${line}transfer-encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n${inner}`],
    ['a chunk longer than it says', `${line}transfer-encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n${inner}`],
    ['a chunk that ends in a bare line feed', `${line}transfer-encoding: chunked\r\n\r\n2\n{}\n0\n\n${inner}`],
    ['a null in a header', `${line}a: b\0c\r\ncontent-length: 2\r\n\r\n{}${inner}`],
    ['a carriage return in a header', `${line}a: b\rx-api-key: KEY\r\ncontent-length: 2\r\n\r\n{}${inner}`],
    [
      'a chunk extension without end',
      `${line}transfer-encoding: chunked\r\n\r\n2;${'x'.repeat(64 * 1024)}\r\n{}\r\n0\r\n\r\n${inner}`,
    ],
  ]

  it.each(cases)('%s: one refusal, and nothing behind it is read', async (_name, bytes) => {
    const before = (await rollout.log()).calls.length
    const answer = await raw(bytes.replaceAll('KEY', rollout.key))
    expect(answer.match(/^HTTP\/1\.1 /gm)).toHaveLength(1)
    // 401 where the refusal needs no body.
    expect(answer).toMatch(/^HTTP\/1\.1 4(00|01|13|31) /)
    expect((await rollout.log()).calls).toHaveLength(before)
  })

  it('chunk extensions of a decent size say nothing and change nothing', async () => {
    const body = JSON.stringify(requestOf('chat').body)
    const chunk = `${Buffer.byteLength(body).toString(16)};a=b;c="d"\r\n${body}\r\n0\r\nx-api-key: other\r\n\r\n`
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${rollout.key}\r\nconnection: close\r\n`
    const answer = await raw(`${head}transfer-encoding: chunked\r\n\r\n${chunk}`)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('header injection', () => {
  it.each([
    '%0d%0aset-cookie:%20a=b',
    '%0aset-cookie:a=b',
    '%00',
    '..%2f..%2fcontrol',
    '%E5%98%8A%E5%98%8Dset-cookie:a',
  ])('%s in a path comes back in no header', async (nasty) => {
    for (const path of [
      `/s/${nasty}/v1/models`,
      `/s/${rollout.sessionId}/v1/${nasty}`,
      `/v1beta/models/${nasty}:generateContent`,
    ]) {
      const reply = await post(`${lab.origin}${path}`, {}, keyHeader('chat', rollout.key))
      expect(reply.status).toBeGreaterThanOrEqual(400)
      expect(reply.headers['set-cookie']).toBeUndefined()
      expect(Object.values(reply.headers).join()).not.toContain('a=b')
    }
  })

  it('what a client sends in headers reaches the engine in none of them', async () => {
    const planted = { 'x-request-id': 'planted-1', 'x-session-id': 'planted-2', 'idempotency-key': 'planted-3' }
    const { path, body } = requestOf('chat')
    await rollout.post(path, body, { ...keyHeader('chat', rollout.key), ...planted })
    const journal = await readFile(lab.engine.journal, 'utf8')
    expect(journal).not.toContain('planted-')
  })
})

describe.each(dialects)('bodies that are too much (%s)', (dialect) => {
  const send = async (
    body: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<readonly [number, string]> => {
    const { path } = requestOf(dialect)
    const reply = await post(`${rollout.root}${path}`, body, { ...keyHeader(dialect, rollout.key), ...headers })
    expect(JSON.parse(reply.text)).toMatchObject(shapes[dialect])
    return [reply.status, reply.text]
  }
  /** A small body that is large once it is unpacked: about 200 to 1. */
  const bomb = Buffer.from(JSON.stringify({ messages: 'x'.repeat(32 * 1024 * 1024) }))

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as const)('a bomb in %s is refused at the limit, not unpacked', async (encoding, pack) => {
    const packed = pack(bomb)
    expect(packed.length).toBeLessThan(maxBodyBytes)
    const [status, text] = await send(packed, { 'content-encoding': encoding })
    expect(status).toBe(413)
    expect(text).toContain(String(maxBodyBytes))
  })

  it('a bomb in a bomb is refused', async () => {
    const [status] = await send(gzipSync(gzipSync(bomb)), { 'content-encoding': 'gzip, gzip' })
    expect(status).toBe(415)
  })

  it('what is not packed as it says is refused', async () => {
    const [status] = await send('{"messages":[]}', { 'content-encoding': 'gzip' })
    expect(status).toBe(400)
  })

  it('a body over the limit is refused by what it declares', async () => {
    const [status] = await send(Buffer.alloc(maxBodyBytes + 1, 0x20))
    expect(status).toBe(413)
  })

  it.each(['[', '{"a":'])('a nesting of %s without end is refused', async (open) => {
    const deep = open.repeat(Math.floor(100_000 / open.length))
    const [status] = await send(`{"model":"m","messages":[{"role":"user","content":${deep}`)
    expect(status).toBe(400)
    const close = open === '[' ? ']' : '1}'
    const depth = 8000
    const inner =
      open === '['
        ? `${'['.repeat(depth)}${']'.repeat(depth)}`
        : `${open.repeat(depth)}1${close.slice(1).repeat(depth)}`
    const [whole] = await send(`{"model":"m","contents":${inner},"input":${inner},"messages":${inner}}`)
    expect(whole).toBe(400)
  })

  it('leaves no call behind', async () => {
    const { calls } = await rollout.log()
    expect(calls.filter((call) => call.intent.dialect === dialect && call.commit?.status !== 200)).toEqual([])
  })
})

describe('slowloris', () => {
  it('sixty clients that dribble are closed, and others are served meanwhile', async () => {
    // Long enough for an honest client on a busy machine.
    await using impatient = await openLab({ limits: { headersTimeoutMs: 2000, requestTimeoutMs: 2500 } })
    const served = await impatient.rollout()
    const port = Number(new URL(impatient.origin).port)
    const starts = [
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n',
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${served.key}\r\ncontent-length: 1000\r\n\r\n{`,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${served.key}\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{`,
    ]
    const slow = Array.from({ length: 60 }, async (_, index) => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      let answer = ''
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
      socket.write(starts[index % starts.length] ?? '')
      const dribble = setInterval(() => socket.write('a'), 50)
      await once(socket, 'close')
      clearInterval(dribble)
      return answer
    })
    const { path, body } = requestOf('chat')
    expect((await served.post(path, body, keyHeader('chat', served.key))).status).toBe(200)
    for (const answer of await Promise.all(slow)) expect(answer).toMatch(/^HTTP\/1\.1 4(08|00) /)
  })
})

describe('what a session key opens', () => {
  it.each(dialects)('its own session, in the error shape of its client elsewhere (%s)', async (dialect) => {
    const other = await lab.rollout()
    const { path, body } = requestOf(dialect)
    const refused = await post(`${other.root}${path}`, body, keyHeader(dialect, rollout.key))
    expect(refused.status).toBe(403)
    expect(JSON.parse(refused.text)).toMatchObject(shapes[dialect])
    const unknown = await post(`${rollout.root}${path}`, body, keyHeader(dialect, 'not-a-key'))
    expect(unknown.status).toBe(401)
    expect(JSON.parse(unknown.text)).toMatchObject(shapes[dialect])
    expect((await other.log()).calls).toEqual([])
  })

  it('no engine route, no control route, no metrics', async () => {
    const routes = [
      '/tokenize',
      '/detokenize',
      '/inference/v1/generate',
      '/v1/rerank',
      '/v1/chat/completions/render',
      '/pause',
      '/resume',
      '/update_weight_version',
      '/abort_requests',
      '/metrics',
      '/healthz',
      '/runs',
      '/sessions',
      '/control',
      '/control/scripts',
      '/engine/pause',
      '/server_info',
    ]
    for (const route of routes) {
      for (const path of [`/s/${rollout.sessionId}${route}`, `/s/${rollout.sessionId}/v1${route}`, route]) {
        const reply = await post(`${lab.origin}${path}`, {}, keyHeader('chat', rollout.key))
        expect([path, reply.status >= 400 && reply.status < 500]).toEqual([path, true])
        expect(reply.text).toContain('ROUTE_DENIED')
      }
    }
  })
})

describe('secrets', () => {
  it('stand in clear in no log, no event and no file, whoever sent them and however', async () => {
    const directory = tempDir()
    const data = join(directory, 'data')
    const secret = (what: string) => `canary-${what}-5f3a9c1e77`
    const serving = await serve(data, [], { PADDOCK_LOG_LEVEL: 'debug' })
    const { ready } = serving
    const key = ready.env.OPENAI_API_KEY
    const root = ready.env.OPENAI_BASE_URL.replace(/\/v1$/, '')
    const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    const chat = { model: ready.env.OPENAI_MODEL, messages: [{ role: 'user', content: 'Say hello.' }] }
    const gemini = { contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }] }
    const messages = { ...chat, max_tokens: 50 }
    const generate = `/v1beta/models/${ready.env.OPENAI_MODEL}:generateContent`
    const bearer = { authorization: `Bearer ${key}` }
    const sent: readonly (readonly [string, Json, Record<string, string>, number])[] = [
      ['/v1/chat/completions', chat, bearer, 200],
      ['/v1/messages', messages, { 'x-api-key': key }, 200],
      [generate, gemini, { 'x-goog-api-key': key }, 200],
      [`${generate}?key=${key}`, gemini, bearer, 200],
      [`/v1/chat/completions?key=${secret('query')}&api_key=${secret('query-two')}`, chat, bearer, 200],
      [`/v1/messages?beta=true&access_token=${secret('query-three')}`, messages, { 'x-api-key': key }, 200],
      [
        '/v1/chat/completions',
        chat,
        { ...bearer, cookie: secret('cookie'), 'proxy-authorization': secret('proxy') },
        200,
      ],
      ['/v1/chat/completions', chat, { ...bearer, 'x-auth-token': secret('token'), 'api-key': secret('azure') }, 200],
      [
        '/v1/chat/completions',
        chat,
        { ...bearer, 'openai-organization': 'org', 'x-amz-security-token': secret('aws') },
        200,
      ],
      ['/v1/chat/completions', chat, { authorization: `Bearer ${secret('bearer')}` }, 401],
      ['/v1/chat/completions', chat, { authorization: `Basic ${secret('basic')}` }, 401],
      ['/v1/messages', messages, { 'x-api-key': secret('anthropic') }, 401],
      [generate, gemini, { 'x-goog-api-key': secret('google') }, 401],
      [`${generate}?key=${secret('google-query')}`, gemini, {}, 401],
      [`/nowhere?key=${secret('nowhere')}`, chat, bearer, 404],
      ['/v1/chat/completions', '{"broken', bearer, 400],
    ]
    for (const [path, body, headers, status] of sent) {
      const reply = await post(`${root}${path}`, body, headers)
      expect([path, reply.status]).toEqual([path, status])
      expect(reply.text).not.toContain('canary-')
    }
    await fetch(`${ready.control}/runs`, { headers: { authorization: `Bearer ${secret('control')}` } })
    await fetch(`${ready.control}/runs?token=${secret('control-query')}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const { out, err } = await serving.stop()
    // The first line hands the key to whoever started the server; it is the only place.
    const printed = out
      .split('\n')
      .filter((line) => !line.includes('"type":"ready"'))
      .join('\n')
    const found = (text: string): string[] => [
      ...(text.match(/canary-[\w-]+/g) ?? []),
      ...(text.includes(key) ? ['the session key'] : []),
    ]
    expect({ out: found(printed), err: found(err) }).toEqual({ out: [], err: [] })
    expect([printed.includes(token), err.includes(token)]).toEqual([false, false])
    const files = await readdir(data, { recursive: true, withFileTypes: true })
    for (const file of files.filter((one) => one.isFile() && one.name !== 'control-token')) {
      const bytes = await readFile(join(file.parentPath, file.name), 'latin1')
      expect([file.name, found(bytes), bytes.includes(token)]).toEqual([file.name, [], false])
    }
    // Columns are compressed: what they say once unpacked.
    await using reader = await openReader(data)
    for (const session of await reader.recorder.sessions()) {
      const log = JSON.stringify(await reader.recorder.session(session.id), (_, value: unknown) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
      )
      expect(found(log)).toEqual([])
    }
  })
})
