/** A tool that a model answers for, then the record of what it said, with real boxes and an agent that does not know. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFile, writeFile } from 'node:fs/promises'
import { json } from 'node:stream/consumers'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './paddock.ts'

const example = fileURLToPath(new URL('../../examples/environments/receipts', import.meta.url))
let directory: string
let server: Server
let asked = 0
beforeAll(async () => {
  directory = tempDir()
  server = createServer(
    (request, response) =>
      void (async () => {
        const { messages } = (await json(request)) as { messages: { content: string }[] }
        asked += 1
        const { shop } = JSON.parse(messages.at(-1)?.content ?? '{}') as { shop: string }
        const content = `2026-03-02,${shop},4.30`
        const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ id: 'x', object: 'chat.completion', choices, usage: { total_tokens: 7 } }))
      })(),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
})

/** The receipts with a `look_up` that no program stands behind. */
async function plugin(name: string, answers: string): Promise<string> {
  const source = await readFile(join(example, 'environment.ts'), 'utf8')
  const virtual = source
    .replace('const lookUp = defineTool({', 'const lookUp = virtualTool({')
    .replace(/\/\/ It runs in the box[^]*?receiptsFile\] \}, \{ signal \}\)\),/, answers)
    // The oracle alone is sampled: it looks a shop up.
    .replace(/weight: [12],/g, 'weight: 1e-9,')
    .replace('  defineTool,\n', '  defineTool,\n  virtualTool,\n')
  expect(virtual).toContain(answers)
  const file = join(directory, `${name}.ts`)
  await writeFile(file, virtual)
  return file
}

async function run(file: string, data: string) {
  const tasks = join(example, 'tasks')
  const args = ['run', tasks, '--env', file, '--task', 'bakery', '--n', '1', '--data', data, '--json']
  const ran = await paddock(args)
  expect(ran.err).toBe('')
  const { rollouts } = JSON.parse(ran.out).summary as {
    rollouts: { rolloutId: string; end: string; verdict: unknown }[]
  }
  const shown = await paddock(['show', rollouts[0]?.rolloutId ?? '', '--data', data, '--json'])
  const { events } = JSON.parse(shown.out) as { events: { kind: string; tool: string; facts?: object }[] }
  return {
    code: ran.code,
    rollouts,
    results: events.filter(({ kind, tool }) => kind === 'tool_result' && tool === 'look_up'),
  }
}

describe('a virtual tool', () => {
  it('is answered by a model, then by the record of what that said', async () => {
    const port = (server.address() as AddressInfo).port
    const model = `model: { baseUrl: 'http://127.0.0.1:${port}/v1', apiKey: 'x', model: 'teller' },`
    const data = join(directory, 'data')
    const first = await run(await plugin('by-model', model), data)
    expect(first).toMatchObject({ code: 0, rollouts: [{ end: 'completed', verdict: { status: 'scored' } }] })
    expect(first.results).toMatchObject([
      {
        status: 'ok',
        result: '2026-03-02,Corner Bakery,4.30',
        facts: { answered_by: 'model', model: 'teller', tokens: 7 },
      },
    ])
    const { rolloutId } = first.rollouts[0] ?? { rolloutId: '' }
    const told = await paddock(['show', rolloutId, '--tool-results', '--data', data])
    const lines = told.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { tool: string })
    expect(lines[0]).toEqual({
      tool: 'look_up',
      args: { shop: 'Corner Bakery' },
      status: 'ok',
      text: '2026-03-02,Corner Bakery,4.30',
    })
    const before = asked
    const record = lines.filter(({ tool }) => tool === 'look_up').map(({ tool: _tool, ...one }) => one)
    const again = await run(await plugin('by-record', `record: ${JSON.stringify(record)},`), join(directory, 'again'))
    expect(again.results).toMatchObject([{ result: '2026-03-02,Corner Bakery,4.30', facts: { answered_by: 'record' } }])
    expect(asked).toBe(before)
  })

  it('whose model is not there ends the rollout as infra, without a number', async () => {
    const model = "model: { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'x', model: 'teller', tries: 1 },"
    const { code, rollouts } = await run(await plugin('dead', model), join(directory, 'dead'))
    expect(code).toBe(3)
    for (const rollout of rollouts) expect(rollout).toMatchObject({ end: 'infra', verdict: null })
  })
})
