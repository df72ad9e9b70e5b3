/** What a newcomer does first: serve, point something at it, look, export; with the real programs. */
import { readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock, serve as serveHere } from './here.ts'
import { chat, serve, type Serving } from './paddock.ts'

let directory: string
let data: string
let serving: Serving
let token: string

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  serving = await serve(data, ['--label', 'who=test'])
  token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
})
afterAll(async () => {
  await serving.stop()
})

function control(path: string, init: RequestInit = {}, key = token): Promise<Response> {
  return fetch(`${serving.ready.control}${path}`, {
    ...init,
    headers: { 'content-type': 'application/json', ...(key === '' ? {} : { authorization: `Bearer ${key}` }) },
  })
}

const messages = [
  { role: 'system', content: 'You are brief.' },
  { role: 'user', content: 'hello \u001b[31mthere' },
]

describe('paddock serve --open', () => {
  it('records a client that has no key and another model name', async () => {
    const open = await serveHere(join(directory, 'open'), ['--open'])
    const answer = await fetch(`${open.ready.inference}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'some-other-model', messages: [{ role: 'user', content: 'hello' }] }),
    })
    expect(answer.status).toBe(200)
    expect(await open.nextCall()).toMatchObject({ status: 200, outcome: { kind: 'complete' } })
    expect((await open.stop()).code).toBe(0)
  })
})

describe('paddock serve whose data directory is gone', () => {
  it('says so when it is stopped, and ends', async () => {
    const lost = join(directory, 'lost')
    const losing = await serveHere(lost)
    await rename(lost, `${lost}-elsewhere`)
    const { code, out, err } = await losing.stop()
    expect(code).toBe(3)
    expect(`${out}${err}`).toContain('STORE_FAILED')
  })
})

describe('paddock serve after kill -9', () => {
  it('goes on with the session that a harness has, and ends all of them when it stops', async () => {
    const store = join(directory, 'killed')
    const first = await serve(store)
    await chat(first.ready, { messages })
    await first.nextCall()
    first.kill('SIGKILL')
    await first.ended
    const again = await serveHere(store, ['--port', new URL(first.ready.inference).port])
    // Another request: the same one would get the answer that may not have arrived.
    const more = [...messages, { role: 'user', content: 'and again' }]
    expect((await chat(first.ready, { messages: more })).status).toBe(200)
    expect(await again.nextCall()).toMatchObject({ sessionId: first.ready.sessionId, seq: 1, status: 200 })
    expect((await again.stop()).code).toBe(0)
    await using reader = await openReader(store)
    const rollouts = await reader.catalogue.rollouts({})
    expect(rollouts.map(({ end }) => end)).toEqual(['completed', 'completed'])
    const keys = await reader.recorder.sessionKeys(10)
    expect(keys.map(({ closed }) => closed)).toEqual([true, true])
  })
})

describe('paddock serve', () => {
  it('records a call and says so in a line', async () => {
    const answer = await chat(serving.ready, { messages })
    expect(answer.status).toBe(200)
    const body = (await answer.json()) as { usage: { completion_tokens: number } }
    expect(await serving.nextCall()).toMatchObject({
      type: 'call',
      sessionId: serving.ready.sessionId,
      seq: 0,
      callClass: 'main',
      status: 200,
      sampledTokens: body.usage.completion_tokens,
    })
  })

  it('keeps the control token to its owner and demands it', async () => {
    expect((await stat(join(data, 'control-token'))).mode & 0o777).toBe(0o600)
    expect((await control('/healthz', {}, '')).status).toBe(200)
    for (const key of ['', 'wrong', serving.ready.env.OPENAI_API_KEY]) {
      const refused = await control('/runs', {}, key)
      expect(refused.status).toBe(401)
      expect(await refused.json()).toMatchObject({ error: { code: 'CONTROL_TOKEN' } })
    }
  })

  it('opens a session with a policy, uses it and closes it', async () => {
    const policy = { pin: { temperature: 0.5 }, budget: { maxCalls: 1 } }
    const made = await control('/sessions', { method: 'POST', body: JSON.stringify({ policy, labels: { a: 'b' } }) })
    expect(made.status).toBe(201)
    const opened = (await made.json()) as { session: { id: string; policy: object }; key: string; baseUrl: string }
    expect(opened.session).toMatchObject({ policy, labels: { a: 'b' } })
    expect(opened.session).not.toHaveProperty('keyDigest')
    const call = () =>
      fetch(`${opened.baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${opened.key}` },
        body: JSON.stringify({ model: 'x', messages }),
      })
    expect((await call()).status).toBe(200)
    await serving.nextCall()
    expect((await call()).status).toBe(429)
    const seen = (await (await control(`/sessions/${opened.session.id}`)).json()) as { calls: object[] }
    expect(seen.calls[0]).toMatchObject({ used: { temperature: 0.5 }, outcome: { kind: 'complete' } })
    expect((await control(`/sessions/${opened.session.id}`, { method: 'DELETE' })).status).toBe(204)
    expect((await call()).status).toBe(409)
  })

  it.each([
    ['an unknown route', '/nowhere', 'GET', undefined, 404, 'NOT_FOUND'],
    ['an unknown session', '/sessions/01a1fadd-3411-7000-a8c3-fcac2b92f671', 'GET', undefined, 404, 'NOT_FOUND'],
    ['malformed JSON', '/sessions', 'POST', '{', 400, 'BODY_INVALID_JSON'],
    ['an unknown role', '/sessions', 'POST', '{"role":"king"}', 400, 'BODY_INVALID_SHAPE'],
    ['an unknown policy key', '/sessions', 'POST', '{"policy":{"pin":{"temprature":1}}}', 400, 'CONFIG_INVALID'],
    [
      'an oversized body',
      '/sessions',
      'POST',
      JSON.stringify({ labels: { a: 'x'.repeat(2_000_000) } }),
      413,
      'BODY_TOO_LARGE',
    ],
    ['a run without tasks', '/runs', 'POST', '{"tasks":"/nowhere"}', 400, 'TASK_INVALID'],
    ['a missing parameter', '/groups', 'GET', undefined, 400, 'BODY_INVALID_SHAPE'],
  ])('answers %s with its code', async (_what, path, method, body, status, code) => {
    const answer = await control(path, body === undefined ? { method } : { method, body })
    const told = (await answer.json()) as { error: { code: string; fix: string } }
    expect({ status: answer.status, code: told.error.code }).toEqual({ status, code })
    expect(told.error.fix).not.toBe('')
  })

  it('tells calls live', async () => {
    const stop = new AbortController()
    const stream = await fetch(`${serving.ready.control}/events`, {
      headers: { authorization: `Bearer ${token}` },
      signal: stop.signal,
    })
    await (await chat(serving.ready, { messages, n: 2 })).text()
    await serving.nextCall()
    let text = ''
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    while (!text.includes('event: call')) text += (await reader?.read())?.value ?? ''
    stop.abort()
    expect(text).toContain(serving.ready.sessionId)
  })

  it('counts in metrics', async () => {
    const text = await (await control('/metrics')).text()
    expect(Number(/^paddock_calls_total (\d+)/m.exec(text)?.[1])).toBeGreaterThanOrEqual(3)
    expect(text).toMatch(/^paddock_nodejs_eventloop_lag_p99_seconds /m)
    expect(text).toMatch(/^paddock_store_queue_depth \d/m)
  })

  it('is the only owner: a second one is told the pid and what to do', async () => {
    const second = await paddock(['serve', '--data', data, '--port', '0', '--control-port', '0'])
    expect(second.code).toBe(3)
    expect(second.err).toMatch(/^STORE_LOCKED: .* Fix: .*\n$/)
    expect(second.err).toContain(String(serving.ready.pid))
  })

  it('shows beside the owner, and after it has ended with the engine off', async () => {
    const beside = await paddock(['list', '--data', data])
    expect(beside.out).toContain(serving.ready.rolloutId.slice(-8))
    const stopped = await serving.stop()
    expect(stopped.code).toBe(0)

    const shown = await paddock(['show', serving.ready.sessionId.slice(-8), '--data', data])
    expect(shown.code).toBe(0)
    expect(shown.out).toContain('call 0 · main')
    expect(shown.out).toMatch(/\d+ tokens trained: ⟦.*│.*⟧/)
    // Texts are known without the engine; what a client wrote cannot steer the terminal.
    expect(shown.out).not.toContain('⟨')
    expect(shown.out).not.toContain('\u001b')
    expect(shown.out).toContain('hello \\x1b[31mthere')

    const json = JSON.parse((await paddock(['show', serving.ready.rolloutId, '--json', '--data', data])).out)
    expect(json.sessions[0].rows[0].tokens.length).toBe(json.sessions[0].rows[0].mask.length)

    const checked = await paddock(['fsck', '--data', data])
    expect(checked.out).toContain('no problems')
    expect(checked.code).toBe(0)
  })

  it('exports what it recorded', async () => {
    const out = join(directory, 'out')
    const written = await paddock(['export', '--format', 'jsonl', '--out', out, '--data', data, '--json'])
    expect(written.code).toBe(0)
    const { manifest } = JSON.parse(written.out)
    expect(manifest.tokens.sampled).toBeGreaterThan(0)
    expect(manifest.tokens.trainable).toBe(manifest.tokens.sampled)
    const again = await paddock(['export', '--format', 'jsonl', '--out', out, '--data', data])
    expect(again).toMatchObject({ code: 2, err: expect.stringMatching(/^EXPORT_REFUSED: .* Fix: /) })
  })
})
