/** A disk that is full: the harness is told, nothing that was acknowledged is lost, and it goes on when there is room. */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fsck, openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, rawPost, startProxy, type TestEngine } from './support.ts'

let engine: TestEngine
beforeAll(async () => {
  engine = await useEngine()
})

const { model } = hello
const text = 'Say hello.'
const requests = [
  ['chat', '/v1/chat/completions', { ...hello }, /"code":"STORE_FAILED"/],
  ['a chat stream', '/v1/chat/completions', { ...hello, stream: true }, /"code":"STORE_FAILED"/],
  ['responses', '/v1/responses', { model, input: text }, /"code":"STORE_FAILED"/],
  ['messages', '/v1/messages', { model, max_tokens: 50, messages: hello.messages }, /"type":"error".*api_error/],
  [
    'gemini',
    `/v1beta/models/${model}:generateContent`,
    { contents: [{ role: 'user', parts: [{ text }] }] },
    /INTERNAL/,
  ],
] as const

describe.skipIf(process.getuid?.() !== 0)('a disk without room', () => {
  let directory: string
  beforeEach(async () => {
    directory = tempDir()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'paddock-test', directory])
  })
  afterEach(async () => {
    execFileSync('umount', [directory])
  })

  /** Takes all the room there is. */
  function fill(): void {
    const fd = openSync(join(directory, 'ballast'), 'w')
    const block = Buffer.alloc(4096)
    try {
      for (;;) if (writeSync(fd, block) < block.length) return
    } catch {
      // ENOSPC: it is full.
    } finally {
      closeSync(fd)
    }
  }

  it('is told in the shape of each dialect, and loses nothing that was acknowledged', async () => {
    const data = join(directory, 'data')
    const store = await openStore(data)
    const paddock = await startProxy(engine.url, { recorder: store.recorder })
    const session = await paddock.open()
    const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
    const answered: string[] = []
    const ask = async (path: string, body: object) => {
      const answer = await rawPost(`${paddock.origin}/s/${session.id}${path}`, JSON.stringify(body), headers)
      const told = await answer.text()
      if (answer.status === 200) answered.push(String(answer.response.headers['x-request-id'] ?? ''))
      return { status: answer.status, told }
    }
    expect((await ask('/v1/chat/completions', hello)).status).toBe(200)
    fill()
    for (const [name, path, body, shape] of requests) {
      // What was begun of a page is still there: a few calls may find room in it.
      let last = await ask(path, body)
      for (let more = 0; more < 40 && last.status === 200; more += 1) last = await ask(path, body)
      expect([last.status, name]).toEqual([500, name])
      expect(last.told).toMatch(shape)
    }
    rmSync(join(directory, 'ballast'))
    for (const [name, path, body] of requests) expect([(await ask(path, body)).status, name]).toEqual([200, name])
    await paddock[Symbol.asyncDispose]()
    await store.close()

    await using again = await openStore(data)
    const { calls } = await again.recorder.session(session.id)
    const whole = calls.filter(({ commit }) => commit?.outcome.kind === 'complete').map(({ intent }) => intent.id)
    expect(answered.filter((id) => id !== '' && !whole.includes(id))).toEqual([])
    expect(whole.length).toBeGreaterThanOrEqual(answered.length)
    expect((await fsck(data)).problems).toEqual([])
  })

  it('is named where a store cannot be opened on it', async () => {
    execFileSync('mount', ['-o', 'remount,ro', directory])
    await expect(openStore(join(directory, 'data'))).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining(directory) as string,
      fix: expect.stringMatching(/space|permission/) as string,
    })
  })
})
