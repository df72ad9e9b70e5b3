/** A judge behind Paddock's own proxy: its calls are recorded as a judge's, and never as the agent's. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createProxy, type Listener, openaiEngine, type Proxy } from '../../src/proxy/index.ts'
import { createJudge, parseRubric } from '../../src/reward/index.ts'
import type { Store } from '../../src/trajectory/index.ts'
import { useStore } from '../fixtures/use-store.ts'

let server: Server
let store: Store
let proxy: Proxy
let listener: Listener

/** A judge that reads: GOOD is yes. */
beforeAll(async () => {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader('content-type', 'application/json')
    if (request.method === 'GET') {
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'fake', object: 'model' }] }))
      return
    }
    const { messages } = (await json(request)) as { messages: { content: string }[] }
    const user = messages[1]?.content ?? ''
    const mark = /Reply with one JSON object.*"mark": "([0-9a-f]+)"/.exec(user)?.[1] ?? ''
    const content = JSON.stringify({ mark, explanation: 'so it is', choice: /^GOOD/m.test(user) ? 'yes' : 'no' })
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
    response.end(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'fake',
        choices,
        usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
      }),
    )
  }
  server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
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

test('every question of a judge, canaries too, stands in the log of its session as class judge', async () => {
  const { session, key, baseUrl } = await proxy.openSession({ role: 'judge' })
  const rubric = parseRubric(
    {
      name: 'right',
      version: '1',
      items: [{ name: 'right', text: 'The answer is right.' }],
      canaries: [
        { item: 'right', answer: 'GOOD canary', choice: 'yes' },
        { item: 'right', answer: 'BAD canary', choice: 'no' },
      ],
    },
    'the test',
  )
  const judge = createJudge({ baseUrl: baseUrl(listener.origin), apiKey: key, model: 'fake', rubric })
  const { signal } = new AbortController()
  const cases = ['GOOD one', 'BAD one'].map((answer) => ({ question: 'What is it?', answer, reference: null }))
  const drafts = await judge.score(cases, { signal })
  expect(drafts.map(({ status, reward }) => [status, reward])).toEqual([
    ['scored', 1],
    ['scored', 0],
  ])
  const log = await store.recorder.session(session.id)
  expect(log.session.role).toBe('judge')
  expect(log.calls.length).toBeGreaterThanOrEqual(4)
  expect(new Set(log.calls.map(({ intent }) => intent.callClass))).toEqual(new Set(['judge']))
})
