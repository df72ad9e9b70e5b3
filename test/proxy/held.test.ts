import { beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { script, rawPost, startProxy, type TestEngine } from './support.ts'

let engine: TestEngine

beforeAll(async () => {
  engine = await useEngine()
  await engine.control('/scripts', script('Look.', [{ think: 'I look.' }, { shell: 'ls' }]))
})

const model = 'scripted-hermes'
const schema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
const thinking = { thinking: { type: 'adaptive' } }

describe('nothing that a client could act on leaves before its tokens are stored', () => {
  it.each([
    {
      dialect: 'messages',
      path: '/v1/messages',
      body: {
        model,
        max_tokens: 99,
        stream: true,
        ...thinking,
        messages: [{ role: 'user', content: 'Look.' }],
        tools: [{ name: 'shell', input_schema: schema }],
      },
      early: 'thinking_delta',
      // The block of the thinking may close, that of the tool may not.
      held: /"content_block_stop","index":1|message_delta|message_stop/,
    },
    {
      dialect: 'responses',
      path: '/v1/responses',
      body: { model, stream: true, input: 'Look.', tools: [{ type: 'function', name: 'shell', parameters: schema }] },
      early: 'response.reasoning_text.delta',
      held: /"response.output_item.done","output_index":1|response\.completed/,
    },
    {
      dialect: 'gemini',
      path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      body: {
        contents: [{ parts: [{ text: 'Look.' }] }],
        generationConfig: { thinkingConfig: { includeThoughts: true } },
        tools: [{ functionDeclarations: [{ name: 'shell', parametersJsonSchema: schema }] }],
      },
      early: '"thought":true',
      held: /functionCall|finishReason/,
    },
  ])('$dialect', async ({ path, body, early, held }) => {
    const store = await useStore()
    const broken = new Proxy(store.recorder, {
      get(target, name) {
        if (name === 'commitCall') return () => Promise.reject(new Error('disk full'))
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const texts: string[] = []
    for (const recorder of [broken, store.recorder]) {
      await using paddock = await startProxy(engine.url, { recorder })
      const session = await paddock.open({ policy: { strategy: 'record' } })
      const url = session.url.replace(/\/v1$/, path)
      const answer = await rawPost(url, JSON.stringify(body), { authorization: `Bearer ${session.key}` })
      texts.push(await answer.text())
    }
    const [lost, stored] = texts
    expect(lost).toContain(early)
    expect(lost).toContain('could not be stored')
    expect(lost).not.toMatch(held)
    expect(stored).toMatch(held)
  })
})
