/** What the chat route of one engine is held to (hostile.test.ts) holds on the other ways by which ids come: token routes, and SGLang's shapes. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sglangEngine, vllmEngine } from '../../../src/proxy/index.ts'
import { type SessionPolicy, wireFaultOf } from '../../../src/trajectory/index.ts'
import { findings, startScripted } from '../../splice/support.ts'
import { startProxy, type TestEngine, type TestProxy } from '../support.ts'
import { type Json, json, raw } from './shapes.ts'

const model = 'scripted-hermes'

/** Where a wire has the last sampled token of a payload: its id, and its logprob. Null: it holds none. */
interface Place {
  id(value: unknown): void
  logprob(value: unknown): void
  /** The list beside the rows tells another id. */
  beside?(id: number): void
  /** The token is not told at all. */
  drop(): void
}

interface Wire {
  readonly name: string
  readonly flags: readonly string[]
  /** Whose answers are spoiled. */
  readonly path: string
  readonly stream: boolean
  readonly strategy: SessionPolicy['strategy']
  readonly place: (payload: Json) => Place | null
}

/** Ids and logprobs in lists of their own. */
const lists = (payload: Json): Place | null => {
  const choice = payload.choices?.[0]
  if (!Array.isArray(choice?.token_ids) || choice.token_ids.length === 0) return null
  const entry = choice.logprobs.content.at(-1)
  return {
    id: (value) => (choice.token_ids[choice.token_ids.length - 1] = value),
    logprob: (value) => (entry.logprob = value),
    drop: () => {
      choice.token_ids.pop()
      choice.logprobs.content.pop()
    },
  }
}

/** Rows of `[logprob, id, text]`. */
const pairs = (meta: Json, ids: Json): Place | null => {
  const list = meta?.output_token_logprobs
  if (!Array.isArray(list) || list.length === 0) return null
  return {
    id: (value) => (list.at(-1)[1] = value),
    logprob: (value) => (list.at(-1)[0] = value),
    ...(Array.isArray(ids) ? { beside: (id: number) => (ids[ids.length - 1] = id) } : {}),
    drop: () => {
      list.pop()
      ids?.pop()
    },
  }
}

const wires: readonly Wire[] = [
  ...[true, false].map((stream): Wire => ({
    name: `vLLM by generate, streamed: ${stream}`,
    flags: [],
    path: '/inference/v1/generate',
    stream,
    strategy: 'splice',
    place: lists,
  })),
  {
    name: 'SGLang by generate',
    flags: ['--wire', 'sglang', '--no-chat-ids'],
    path: '/generate',
    stream: false,
    strategy: 'splice',
    place: (payload) => pairs(payload.meta_info, payload.output_ids),
  },
  ...(['record', 'splice'] as const).map((strategy): Wire => ({
    name: `SGLang by chat, ${strategy}`,
    flags: ['--wire', 'sglang'],
    path: '/v1/chat/completions',
    stream: false,
    strategy,
    place: (payload) => pairs(payload.choices?.[0]?.meta_info, null),
  })),
]

const twice = 'another id in the list beside the rows'
const outside = 'an id outside the vocabulary'
const lies: readonly (readonly [string, (place: Place) => void, readonly string[]])[] = [
  ['an id of 2^32', (at) => at.id(4_294_967_296), ['invalid_ids']],
  ['an id with a fraction', (at) => at.id(1.5), ['invalid_ids']],
  ['an id as a string', (at) => at.id('10'), ['invalid_ids']],
  ['a negative id', (at) => at.id(-7), ['invalid_ids']],
  [outside, (at) => at.id(99_999_999), ['invalid_ids']],
  ['an id of null', (at) => at.id(null), ['invalid_ids']],
  ['an infinite id', (at) => at.id(raw('1e400')), ['invalid_ids']],
  ['a positive logprob', (at) => at.logprob(3.5), ['positive_logprob']],
  [twice, (at) => at.beside?.(7), ['invalid_ids']],
  ['a token that is not told', (at) => at.drop(), ['count_mismatch']],
]

describe.each(wires)('$name', ({ flags, path, stream, strategy, place }) => {
  // SGLang does not say how large its vocabulary is.
  const tells = !flags.includes('sglang')
  let engine: TestEngine
  let between: Server
  let paddock: TestProxy
  let lie: ((place: Place) => void) | null = null
  beforeAll(async () => {
    engine = await startScripted(model, ...flags)
    between = createServer((request, response) => {
      void (async () => {
        const { host: _host, 'content-length': _length, connection: _connection, ...headers } = request.headers
        const body = request.method === 'POST' ? await buffer(request) : undefined
        const answer = await fetch(engine.url + request.url, {
          method: request.method ?? 'GET',
          headers: headers as Record<string, string>,
          ...(body === undefined ? {} : { body: new Uint8Array(body) }),
        })
        const text = await answer.text()
        const spoiled = request.url?.split('?')[0] === path ? spoil(text) : text
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
        response.end(spoiled)
      })()
    })
    await new Promise<void>((done) => void between.listen(0, '127.0.0.1', done))
    const url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
    const isSglang = flags.includes('sglang')
    paddock = await startProxy(url, { engine: isSglang ? sglangEngine({ url }) : vllmEngine({ url }) })
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
    between.closeAllConnections()
    between.close()
  })

  /** The lie stands in the last payload that holds a token. */
  function spoil(text: string): string {
    if (lie === null) return text
    const events = text.startsWith('data:')
    const pieces = events ? text.split('\n\n') : [text]
    for (const [at, piece] of [...pieces.entries()].toReversed()) {
      const body = events ? piece.slice('data: '.length) : piece
      if (!body.startsWith('{')) continue
      const payload = JSON.parse(body) as Json
      const found = place(payload)
      if (found === null) continue
      lie(found)
      pieces[at] = `${events ? 'data: ' : ''}${json(payload)}`
      return pieces.join('\n\n')
    }
    return text
  }

  async function asked() {
    const session = await paddock.open({ policy: { strategy, history: 'sampled' } })
    const answer = await session.post({ model, stream, messages: [{ role: 'user', content: 'Say hello.' }] })
    await answer.text()
    return session.log()
  }

  it('is believed where it tells the truth', async () => {
    lie = null
    const log = await asked()
    expect(findings(log)).toEqual([])
    expect(log.calls.map(({ intent }) => intent.strategy)).toEqual([strategy])
    expect(log.segments.flatMap(({ choice, tokens }) => (choice === null ? [] : [...tokens])).length).toBeGreaterThan(2)
  })

  const hasList = path === '/generate'
  it.each(lies.filter(([name]) => (tells || name !== outside) && (hasList || name !== twice)))(
    '%s is found and voids the answer',
    async (_name, told, finds) => {
      lie = told
      const log = await asked()
      const [call] = log.calls
      const outcome = call?.commit?.outcome.kind
      // Ids of which the engine itself makes no message have no reply, and are not trained either.
      const untold = outcome === 'engine_error' && findings(log).includes('derender_failed')
      expect(findings(log)).toEqual(expect.arrayContaining(untold ? ['derender_failed'] : [...finds]))
      expect(untold || wireFaultOf(findings(log)) !== null).toBe(true)
    },
  )
})
