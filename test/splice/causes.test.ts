import { describe, expect, it } from 'vitest'
import type { OpenSession } from '../../src/proxy/index.ts'
import { startProxy, type TestEngine, type TestProxy, type TestSession } from '../proxy/support.ts'
import {
  ask,
  converse,
  expectFaithful,
  findings,
  forks,
  type Habits,
  reserialised,
  rows,
  startScripted,
} from './support.ts'

/** A world of its own for each test: faults and learned terminators stay in it. */
async function world(
  model: string,
  run: (engine: TestEngine, paddock: TestProxy) => Promise<void>,
  ...flags: string[]
): Promise<void> {
  const engine = await startScripted(model, ...flags)
  await using paddock = await startProxy(engine.url)
  await run(engine, paddock)
}

const splice = (history: 'sampled' | 'template' = 'sampled'): OpenSession => ({
  policy: { strategy: 'splice', history },
})
const story = [{ role: 'user', content: 'Tell me a story.' }]

describe('what splice does where it must not extend', () => {
  it('goes on from truncated answers, closes them as the template does, and continues one in place', () =>
    world('scripted-qwen', async (engine, paddock) => {
      const session = await paddock.open(splice())
      const habits: Habits = { model: 'scripted-qwen', more: { max_tokens: 5 } }
      const first = await ask(session, story, habits)
      const second = await ask(session, [...story, first, { role: 'user', content: 'Go on.' }], habits)
      const all = [...story, first, { role: 'user', content: 'Go on.' }, second]
      await ask(session, all, {
        ...habits,
        more: { max_tokens: 5, continue_final_message: true, add_generation_prompt: false },
      })
      const log = await session.log()
      expect(log.calls.map((call) => call.commit?.choices[0]?.finishReason)).toEqual(['length', 'length', 'length'])
      expect([forks(log), rows(log), findings(log)]).toEqual([[], 1, []])
      await expectFaithful(log, engine)
    }))

  it('never splices over what the harness edited: text, thinking, arguments, tools', () =>
    world('scripted-hermes', async (engine, paddock) => {
      const edits: readonly ((message: Record<string, unknown>) => Record<string, unknown>)[] = [
        (message) => ({ ...message, content: 'I did nothing.' }),
        (message) => ({ ...message, reasoning: 'I was told to.' }),
        (message) => ({
          ...message,
          tool_calls: [{ id: 'x', type: 'function', function: { name: 'shell', arguments: '{"command":"rm -rf /"}' } }],
        }),
      ]
      for (const edit of edits) {
        const session = await paddock.open(splice())
        const messages = [{ role: 'user', content: 'Tidy the höuse.' }]
        const answer = await ask(session, messages, { model: 'scripted-hermes' })
        const edited = edit(answer)
        const result = { role: 'tool', tool_call_id: 'x', content: 'done' }
        await ask(session, [...messages, edited, result], { model: 'scripted-hermes' })
        const log = await session.log()
        const truth = await engine.generation(log.calls[1]?.intent.id)
        // A changed text is another turn: nothing says that it should have extended the first.
        expect(forks(log).every((cause) => cause === 'harness_rewrite')).toBe(true)
        expect(rows(log)).toBe(2)
        const asRecord = await paddock.open({ policy: { strategy: 'record' } })
        await ask(asRecord, [...messages, edited, result], { model: 'scripted-hermes' })
        const call = (await asRecord.log()).calls[0]
        expect(truth.promptTokenIds).toEqual((await engine.generation(call?.intent.id)).promptTokenIds)
        await expectFaithful(log, engine)
      }
      const session = await paddock.open(splice())
      const first = await ask(session, story, { model: 'scripted-hermes' })
      const body = {
        model: 'scripted-hermes',
        messages: [...story, reserialised(first), { role: 'user', content: 'More.' }],
      }
      await (await session.post({ ...body, tools: [] })).text()
      expect(forks(await session.log())).toEqual(['harness_rewrite'])
    }))

  it('splices up to a tool result that the harness edited, and not over it', () =>
    world('scripted-hermes', async (engine, paddock) => {
      const habits: Habits = { model: 'scripted-hermes' }
      const session = await paddock.open(splice())
      const asked = { role: 'user', content: 'Tidy the höuse.' }
      const result = (content: string) => ({ role: 'tool', tool_call_id: 'x', content })
      const first = reserialised(await ask(session, [asked], habits))
      const second = reserialised(await ask(session, [asked, first, result('a mess')], habits))
      const edited = [asked, first, result('all tidy'), second, result('done'), result('done')]
      await ask(session, edited, habits)
      const log = await session.log()
      const { promptTokenIds } = await engine.generation(log.calls[2]?.intent.id)
      const answer = await fetch(`${engine.url}/detokenize`, {
        method: 'POST',
        body: JSON.stringify({ tokens: promptTokenIds }),
      })
      const { prompt } = (await answer.json()) as { prompt: string }
      // The first answer stands as it was sampled, thinking included; behind it everything is as the harness says now.
      expect(prompt).toContain('First I look')
      expect(prompt).toContain('all tidy')
      expect(prompt).not.toContain('a mess')
      expect(prompt).not.toContain('Two at once')
      // The second answer is no longer gone on from: a row of its own, and the ledger says why.
      expect([forks(log), rows(log)]).toEqual([['harness_rewrite'], 2])
      await expectFaithful(log, engine)
    }))

  it('leaves thinking to the template where the session says so, and only there', () =>
    world('scripted-qwen3', async (engine, paddock) => {
      const session = await paddock.open(splice('template'))
      // The harness forgets all thinking; within a turn of the user this template keeps it.
      await converse(session, ['Tidy the höuse.', 'And now the cellar.'], {
        model: 'scripted-qwen3',
        echo: reserialised,
      })
      const log = await session.log()
      expect(forks(log)).toEqual(['think_stripped'])
      expect(rows(log)).toBe(2)
      await expectFaithful(log, engine)
    }))

  it('hangs the next turn at the visible cut of a stop string; the tail is a leaf of its own', () =>
    world('scripted-qwen', async (engine, paddock) => {
      for (const stream of [false, true]) {
        for (const strategy of ['splice', 'record'] as const) {
          const session = await paddock.open({ policy: { strategy, history: 'sampled' } })
          const habits: Habits = { model: 'scripted-qwen', stream, more: { stop: [' The end'] } }
          const first = await ask(session, story, habits)
          expect(first['content']).toBe('Once upon a time there was a proxy. It kept every token.')
          await ask(session, [...story, first, { role: 'user', content: 'Thanks.' }], habits)
          const log = await session.log()
          const tail = log.segments.find((segment) => segment.stopCut)
          expect(tail?.tokens.length).toBeGreaterThan(0)
          expect(log.segments.some((segment) => segment.parent?.segmentId === tail?.id)).toBe(false)
          expect([strategy, forks(log), rows(log)]).toEqual([strategy, [], 1])
          await expectFaithful(log, engine)
        }
      }
    }))

  it('siblings: the next turn extends the one that came back', () =>
    world('scripted-hermes', async (engine, paddock) => {
      const session = await paddock.open(splice())
      const answer = await session.client.chat.completions.create({
        model: 'scripted-hermes',
        messages: [{ role: 'user', content: 'Hello.' }],
        n: 4,
        seed: 3,
        temperature: 2,
      })
      const messages = [{ role: 'user', content: 'Hello.' }, { ...answer.choices[2]?.message }]
      expect(
        (await session.post({ model: 'scripted-hermes', messages: [...messages, { role: 'user', content: 'Again.' }] }))
          .status,
      ).toBe(200)
      const log = await session.log()
      expect(log.calls[0]?.commit?.choices).toHaveLength(4)
      expect(forks(log).filter((cause) => cause !== 'ambiguous')).toEqual([])
      await expectFaithful(log, engine)
    }))

  it('keeps constraints, forced tools and the token limit', () =>
    world('scripted-llama', async (engine, paddock) => {
      const session = await paddock.open(splice())
      const messages = [{ role: 'user', content: 'Tidy the höuse.' }]
      const forced: Habits = {
        model: 'scripted-llama',
        more: { tool_choice: { type: 'function', function: { name: 'shell' } } },
      }
      const answer = await ask(session, messages, forced)
      expect(answer).toMatchObject({ tool_calls: [{ function: { name: 'shell' } }] })
      const schema = { type: 'object', properties: { total: { type: 'integer' } }, required: ['total'] }
      const body = JSON.stringify({
        model: 'scripted-llama',
        messages: [{ role: 'user', content: 'Give me JSON.' }],
        response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
        max_tokens: 40,
      })
      const reply = JSON.parse(await (await session.post(body)).text())
      expect(Object.keys(JSON.parse(reply.choices[0].message.content))).toEqual(['total'])
      await expectFaithful(await session.log(), engine)
    }))
})

describe('engines that cannot', () => {
  it('auto records, splice is refused with the flag that is missing', () =>
    world(
      'scripted-hermes',
      async (_engine, paddock) => {
        await expect(paddock.open(splice())).rejects.toMatchObject({ code: 'ENGINE_INCAPABLE' })
        const session = await paddock.open({ policy: { strategy: 'auto' } })
        await ask(session, story, { model: 'scripted-hermes' })
        expect((await session.log()).calls[0]?.intent.strategy).toBe('record')
      },
      '--no-scale-out',
    ))

  it('auto says splice per call, and record for media', () =>
    world('scripted-hermes', async (_engine, paddock) => {
      const session = await paddock.open({ policy: { strategy: 'auto' } })
      await ask(session, story, { model: 'scripted-hermes' })
      const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
      // The scripted engine reads text only; what matters is which strategy was taken.
      await (await session.post({ model: 'scripted-hermes', messages: [{ role: 'user', content: [image] }] })).text()
      expect((await session.log()).calls.map((call) => call.intent.strategy)).toEqual(['splice', 'record'])
    }))

  it.each(['before_headers', 'mid_token', 'before_finish'])(
    'an engine that dies %s is an error, and what came is kept',
    (at) =>
      world('scripted-hermes', async (engine, paddock) => {
        const session: TestSession = await paddock.open(splice())
        await engine.fault({ kind: 'die', at, token: 4, count: 0, match: { session: session.id } })
        const answer = await session.post({ model: 'scripted-hermes', messages: story, stream: true })
        await answer.text().catch(() => '')
        const log = await session.log()
        expect(log.calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'ENGINE_DIED' })
        const sampled = log.segments.filter((segment) => segment.origin === 'sampled')
        expect(sampled.length > 0).toBe(at !== 'before_headers')
        if (sampled.length === 0) return
        const truth = await engine.generation(log.calls[0]?.intent.id)
        const ids = sampled.flatMap((segment) => [...segment.tokens])
        expect(truth.choices[0]?.tokenIds.slice(0, ids.length)).toEqual(ids)
      }),
  )
})
