import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionLog } from '../../src/trajectory/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, shellTool, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

const scripts = async (to: TestEngine) => {
  await to.control(
    '/scripts',
    script('Tidy up.', [{ think: 'First I look.' }, { shell: 'ls' }, { shell: 'rm *.tmp' }, { say: 'Tidy.' }]),
  )
  await to.control('/scripts', script('Clean up.', [{ shell: 'ls' }, { shell: 'rm *.tmp' }, { say: 'Clean.' }]))
  await to.control('/scripts', script('Say it.', [{ say: 'It is said.' }]))
}

beforeAll(async () => {
  engine = await useEngine()
  await scripts(engine)
  paddock = await startProxy(engine.url)
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

type Message = Record<string, unknown>

/** A harness of few lines: asks, runs nothing, answers each tool call, until there is none. */
async function agent(
  session: TestSession,
  instruction: string,
  options: {
    model?: string
    stream?: boolean
    echo?: (message: Message) => Message
    observe?: (text: string) => Message[]
  } = {},
): Promise<void> {
  const messages: Message[] = [{ role: 'user', content: instruction }]
  const echo = options.echo ?? ((message) => message)
  for (let turn = 0; turn < 6; turn += 1) {
    const body = { model: options.model ?? 'scripted-hermes', messages, tools: [shellTool] }
    const client = session.client.chat.completions
    const answer = options.stream
      ? await client.stream(body as never).finalChatCompletion()
      : await client.create(body as never)
    const message = answer.choices[0]?.message as unknown as Message
    messages.push(echo(message))
    const calls = (message['tool_calls'] ?? []) as { id: string }[]
    if (calls.length === 0) return
    for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: `done ${turn}` })
    messages.push(...(options.observe?.(`turn ${turn}`) ?? []))
  }
}

/** Ids of each call's context and answer, as the tree says and as the engine's journal says. */
async function faithful(log: SessionLog, from: TestEngine): Promise<void> {
  const byId = new Map(log.segments.map((segment) => [segment.id, segment]))
  const path = (id: string, offset: number): number[] => {
    const segment = byId.get(id)
    if (segment === undefined) throw new Error(`no segment ${id}`)
    const before = segment.parent === null ? [] : path(segment.parent.segmentId, segment.parent.offset)
    return [...before, ...segment.tokens.subarray(0, offset)]
  }
  for (const call of log.calls) {
    const truth = await from.generation(call.intent.id)
    for (const choice of call.commit?.choices ?? []) {
      const sampled = byId.get(choice.segmentId ?? '')
      expect([...(sampled?.tokens ?? [])]).toEqual(truth.choices[choice.index]?.tokenIds)
      expect(sampled?.parent && path(sampled.parent.segmentId, sampled.parent.offset)).toEqual(truth.promptTokenIds)
    }
  }
}

const forks = (log: SessionLog) => log.calls.flatMap((call) => call.commit?.forks.map((fork) => fork.cause) ?? [])
const leaves = (log: SessionLog) =>
  log.segments.filter((s) => s.origin === 'sampled' && !log.segments.some((child) => child.parent?.segmentId === s.id))

describe('strategy record', () => {
  it.each([false, true])('append-only turns extend: one path, no fork (stream %s)', async (stream) => {
    const session = await paddock.open()
    // The official client's stream helper drops the thinking, which would be a fork of its own.
    await agent(session, stream ? 'Clean up.' : 'Tidy up.', { stream })
    const log = await session.log()
    expect(log.calls.length).toBeGreaterThan(2)
    expect(forks(log)).toEqual([])
    expect(leaves(log)).toHaveLength(1)
    // Prompt ids are stored once: what was added after each answer, and nothing again.
    const last = await engine.generation(log.calls.at(-1)?.intent.id)
    const stored = log.segments.reduce((sum, segment) => sum + segment.tokens.length, 0)
    expect(stored).toBe(last.promptTokenIds.length + (last.choices[0]?.tokenIds.length ?? 0))
    await faithful(log, engine)
    expect(log.calls.map((call) => call.delivery)).toEqual([...Array(log.calls.length - 1).fill('echoed'), 'sent'])
    const toolSpans = log.spans.filter((span) => span.role === 'tool')
    expect(toolSpans).toHaveLength(log.calls.length - 1)
    expect(log.spans.filter((span) => span.role === 'assistant')).toHaveLength(log.calls.length)
  })

  it('extends as well when the harness sends arguments back re-serialised and without thinking', async () => {
    const session = await paddock.open()
    await agent(session, 'Tidy up.', {
      echo: ({ reasoning: _thinking, tool_calls, ...rest }) => ({
        ...rest,
        ...(Array.isArray(tool_calls)
          ? {
              tool_calls: tool_calls.map((call) => ({
                ...call,
                function: { ...call.function, arguments: JSON.stringify(JSON.parse(call.function.arguments), null, 1) },
              })),
            }
          : {}),
      }),
    })
    const log = await session.log()
    await faithful(log, engine)
    // The engine was conditioned on the re-serialised text, so the truth is a fork, and it says why.
    expect(forks(log).every((cause) => cause === 'json_reserialised' || cause === 'think_stripped')).toBe(true)
    expect(leaves(log).length).toBe(1 + forks(log).length)
    expect(log.calls.slice(0, -1).map((call) => call.delivery)).toEqual(Array(log.calls.length - 1).fill('echoed'))
  })

  it('a template that strips thinking forks with that cause', async () => {
    const qwen = await useEngine('--model', 'scripted-qwen3')
    await scripts(qwen)
    await using own = await startProxy(qwen.url)
    const session = await own.open()
    await agent(session, 'Tidy up.', {
      model: 'scripted-qwen3',
      observe: (text) => [{ role: 'user', content: `Go on (${text}).` }],
    })
    const log = await session.log()
    await faithful(log, qwen)
    expect(forks(log)).toContain('think_stripped')
    const [fork] = log.calls.flatMap((call) => call.commit?.forks ?? [])
    expect(fork?.fromCallId).toBe(log.calls[0]?.intent.id)
    expect(fork?.tokensAffected).toBeGreaterThan(0)
    expect(fork?.expected).not.toEqual(fork?.got)
  })

  it('a harness that rewrites its history forks with that cause', async () => {
    const session = await paddock.open()
    const first = [{ role: 'user' as const, content: 'Say it.' }]
    const answer = await session.client.chat.completions.create({ model: 'scripted-hermes', messages: first })
    const content = answer.choices[0]?.message.content ?? ''
    await session.client.chat.completions.create({
      model: 'scripted-hermes',
      messages: [
        { role: 'user', content: 'Say it, now.' },
        { role: 'assistant', content },
        { role: 'user', content: 'Again.' },
      ],
    })
    const log = await session.log()
    expect(forks(log)).toEqual(['harness_rewrite'])
    await faithful(log, engine)
  })

  it('siblings share their prompt, stay apart, and a turn that continues one of them extends that one', async () => {
    const session = await paddock.open()
    const messages = [{ role: 'user' as const, content: 'Hello there.' }]
    const ask = (more: object) => session.client.chat.completions.create({ model: 'scripted-hermes', ...more } as never)
    const a = (await ask({ messages, seed: 1 })) as unknown as { choices: { message: Message }[] }
    await ask({ messages, seed: 1, n: 2 })
    let log = await session.log()
    expect(log.segments.filter((segment) => segment.origin === 'prompt')).toHaveLength(1)
    expect(log.segments.filter((segment) => segment.origin === 'sampled')).toHaveLength(3)
    await ask({ messages: [...messages, a.choices[0]?.message, { role: 'user', content: 'More.' }] })
    log = await session.log()
    await faithful(log, engine)
    // Where several samples have the same words nobody can say which one is continued: a typed fork, never a guess.
    const texts = log.calls
      .slice(0, 2)
      .flatMap((call) => call.commit?.choices.map((c) => JSON.parse(c.message).content))
    const same = texts.filter((text) => text === texts[0]).length
    expect(forks(log)).toEqual(same > 1 ? ['ambiguous'] : [])
  })

  it('an engine that cuts the prompt is found out', async () => {
    const session = await paddock.open()
    const first = [{ role: 'user' as const, content: 'Say it.' }]
    const answer = await session.client.chat.completions.create({ model: 'scripted-hermes', messages: first })
    await engine.fault({ kind: 'truncate_prompt', keep: 6, match: { session: session.id } })
    const content = answer.choices[0]?.message.content ?? ''
    const messages = [...first, { role: 'assistant' as const, content }, { role: 'user' as const, content: 'Again.' }]
    await session.client.chat.completions.create({ model: 'scripted-hermes', messages })
    expect(forks(await session.log())).toEqual(['truncated'])
  })

  it('a weight update in the middle marks the span as mixed', async () => {
    const session = await paddock.open()
    await engine.fault({ kind: 'weight_update', token: 2, version: 'w9', match: { session: session.id } })
    await (await session.post({ model: 'scripted-hermes', messages: [{ role: 'user', content: 'Say it.' }] })).text()
    const log = await session.log()
    const sampled = log.segments.find((segment) => segment.origin === 'sampled')
    expect(sampled?.policySpans).toHaveLength(1)
    expect(sampled?.policySpans[0]).toMatchObject({
      start: 0,
      end: sampled?.tokens.length,
      policy: { model: 'scripted-hermes' },
    })
  })
})
