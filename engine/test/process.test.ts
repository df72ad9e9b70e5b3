import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { chunksOf, INSTRUCTION, joinChat, SCRIPT, post, postStream, SHELL_TOOL, startEngine } from './support.ts'
import type { ChildProcess } from 'node:child_process'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import type { Loose } from './support.ts'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const ASK = { messages: [{ role: 'user', content: INSTRUCTION }], tools: [SHELL_TOOL], return_token_ids: true, seed: 3 }

const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

function start(...flags: string[]): ChildProcess {
  const child = spawn(process.execPath, [MAIN, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  return child
}

async function ready(child: ChildProcess): Promise<Loose> {
  if (child.stdout === null) throw new Error('no stdout')
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line)
  throw new Error('ended before it was ready')
}

/** Of a child that still runs; when all that it said has been read. */
function exitCode(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('close', resolve))
}

describe('the process', () => {
  it('says where it listens in one line, keeps its journal through SIGKILL, ends on SIGTERM', async () => {
    const journal = join(tempDir(), 'journal.jsonl')
    const child = start('--port', '0', '--model', 'scripted-qwen3', '--journal', journal)
    const said = await ready(child)
    expect(said).toEqual({
      ready: true,
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      control: `${said.url}/control`,
      model: 'scripted-qwen3',
    })
    await post(said, '/control/scripts', SCRIPT)
    const answer = await post(said, '/v1/chat/completions', ASK, { 'x-request-id': 'seen', 'x-session-id': 's' })
    child.kill('SIGKILL')
    await exitCode(child)
    const lines = readFileSync(journal, 'utf8')
      .trim()
      .split('\n')
      .map((line): Loose => JSON.parse(line))
    expect(lines.slice(0, 2).map((line) => line.kind)).toEqual(['intent', 'generation'])
    expect(lines[1]).toMatchObject({
      requestId: 'chatcmpl-seen',
      wire: 'vllm',
      model: 'scripted-qwen3',
      tokenizer: 'chatml',
      weightVersionBefore: '0',
      promptTokenIds: answer.prompt_token_ids,
      choices: [{ index: 0, tokenIds: answer.choices[0].token_ids, finishReason: 'stop' }],
      headers: { 'x-request-id': 'seen', 'x-session-id': 's' },
      sampling: { temperature: 1, topP: 1, seed: 3 },
    })

    const second = start('--journal', journal)
    await ready(second)
    second.kill('SIGTERM')
    expect(await exitCode(second)).toBe(0)
  })

  it('answers any request target, also those that are no URL', async () => {
    const { hostname, port } = new URL((await ready(start('--port', '0'))).url)
    for (const path of ['//', '///x', '*', 'http://[', 'http://a/nowhere']) {
      const asked = request({ hostname, port, path, method: 'GET' }).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.resume()
      expect([path, response.statusCode]).toEqual([path, 404])
    }
    expect((await fetch(`http://${hostname}:${port}/v1/models`)).status).toBe(200)
  })

  it.each([
    [['--model', 'gpt-7'], /unknown profile gpt-7; known: scripted-hermes/],
    [['--wire', 'tgi'], /--wire must be/],
    [['--port', 'x'], /--port needs a number/],
    [['--fault', '{"kind":"nope"}'], /unknown fault kind nope/],
  ])('refuses %j with a plain line and exit code 2', async (flags, message) => {
    const child = start(...flags)
    let said = ''
    child.stderr?.on('data', (part) => (said += String(part)))
    expect(await exitCode(child)).toBe(2)
    expect(said).toMatch(message)
    expect(said.trim().split('\n')).toHaveLength(1)
  })
})

describe('the journal and the wire', () => {
  it('keeps session headers and no key', async () => {
    await using engine = await startEngine()
    const headers = { 'x-session-id': 's-9', 'x-api-key': 'top-secret', authorization: 'Bearer top-secret' }
    await post(engine, '/v1/chat/completions', ASK, headers)
    const text = JSON.stringify(engine.engine.journal.lines())
    expect(text).toContain('"x-session-id":"s-9"')
    expect(text).not.toContain('top-secret')
  })

  it('closes each request with how it was delivered', async () => {
    await using engine = await startEngine()
    const answer = await fetch(`${engine.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(ASK) })
    const bytes = (await answer.arrayBuffer()).byteLength
    await expect
      .poll(() => engine.engine.journal.lines().at(-1))
      .toMatchObject({ kind: 'delivery', ended: 'finished', bytes })
  })

  it('records a client that leaves as aborted, with the tokens drawn until then', async () => {
    await using engine = await startEngine('--tokens-per-second', '50')
    await post(engine, '/control/scripts', SCRIPT)
    const leave = new AbortController()
    const response = await fetch(`${engine.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...ASK, stream: true }),
      signal: leave.signal,
    })
    await response.body?.getReader().read()
    leave.abort()
    await expect.poll(() => engine.engine.flights.size).toBe(0)
    const generation = engine.engine.journal.lines().find((line) => line.kind === 'generation')
    expect(generation).toMatchObject({ choices: [{ finishReason: 'abort' }] })
  })

  it('serves two hundred streams at once, each with its own tokens', async () => {
    await using engine = await startEngine()
    await post(engine, '/control/scripts', SCRIPT)
    const streams = await Promise.all(
      Array.from({ length: 200 }, (_none, seed) =>
        postStream(engine, '/v1/chat/completions', { ...ASK, seed, stream: true }),
      ),
    )
    const seen = streams.map(({ events }) => joinChat(chunksOf(events))[0]?.ids.join())
    const truth = engine.engine.journal
      .lines()
      .flatMap((line) => (line.kind === 'generation' ? [line.choices[0]?.tokenIds.join()] : []))
    expect(seen.map(String).toSorted()).toEqual(truth.map(String).toSorted())
    expect(new Set(seen).size).toBe(2)
  })
})
