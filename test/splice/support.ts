import { expect } from 'vitest'
import type { SessionLog } from '../../src/trajectory/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { shellTool, type TestEngine, type TestSession } from '../proxy/support.ts'

/** Every template profile of the scripted engine. */
export const profiles = [
  'scripted-hermes',
  'scripted-qwen',
  'scripted-qwen3',
  'scripted-qwen3-thinking',
  'scripted-llama',
] as const

export type Message = Record<string, unknown>

/** What a conversation is made of. */
export interface Habits {
  readonly model: string
  readonly stream?: boolean
  /** How the harness gives an answer back. */
  readonly echo?: (message: Message) => Message
  /** What it says after each tool result. */
  readonly observe?: (turn: number) => Message[]
  readonly result?: (turn: number) => string
  readonly more?: Readonly<Record<string, unknown>>
}

/** A harness of few lines: asks, answers each tool call, until there is none; then the next instruction. */
export async function converse(
  session: TestSession,
  instructions: readonly string[],
  habits: Habits,
): Promise<Message[]> {
  const messages: Message[] = [{ role: 'system', content: 'Take care.' }]
  for (const instruction of instructions) {
    messages.push({ role: 'user', content: instruction })
    for (let turn = 0; turn < 8; turn += 1) {
      const message = await ask(session, messages, habits)
      messages.push((habits.echo ?? ((one) => one))(message))
      const calls = (message['tool_calls'] ?? []) as { id: string }[]
      if (calls.length === 0) break
      for (const call of calls) {
        messages.push({ role: 'tool', tool_call_id: call.id, content: habits.result?.(turn) ?? `done ${turn}` })
      }
      messages.push(...(habits.observe?.(turn) ?? []))
    }
  }
  return messages
}

/** One call; the message as the wire gave it, thinking included. */
export async function ask(session: TestSession, messages: readonly Message[], habits: Habits): Promise<Message> {
  const body = { model: habits.model, messages, tools: [shellTool], stream: habits.stream ?? false, ...habits.more }
  const answer = await session.post(body)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  if (habits.stream !== true) return JSON.parse(text).choices[0].message as Message
  return joined(text)
}

function joined(stream: string): Message {
  let content: string | null = null
  let reasoning = ''
  let named = 'reasoning'
  const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = []
  for (const event of stream.split('\n\n')) {
    if (!event.startsWith('data: {')) continue
    const payload = JSON.parse(event.slice(6))
    if (payload.error !== undefined) throw new Error(JSON.stringify(payload.error))
    const delta = payload.choices[0]?.delta ?? {}
    // Published clients take no more than that, or lose what else there is.
    const said = [delta.content, delta.reasoning ?? delta.reasoning_content, ...(delta.tool_calls ?? [])].filter(
      Boolean,
    )
    if (said.length > 1) throw new Error(`an event says ${said.length} things: ${JSON.stringify(delta)}`)
    if (typeof delta.content === 'string') content = (content ?? '') + delta.content
    reasoning += delta.reasoning ?? delta.reasoning_content ?? ''
    if (delta.reasoning_content !== undefined) named = 'reasoning_content'
    for (const part of delta.tool_calls ?? []) {
      const call = (calls[part.index] ??= { id: part.id, type: 'function', function: { name: '', arguments: '' } })
      call.function.name ||= part.function?.name ?? ''
      call.function.arguments += part.function?.arguments ?? ''
    }
  }
  return {
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : { [named]: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

/** Ids of each call's context and answer, as the tree says and as the engine's journal says. */
export async function expectFaithful(log: SessionLog, engine: TestEngine): Promise<void> {
  for (const call of log.calls) {
    const truth = await engine.generation(call.intent.id)
    for (const choice of call.commit?.choices ?? []) {
      const sampled = log.segments.find((segment) => segment.id === choice.segmentId)
      const tail = log.segments.find((segment) => segment.stopCut && segment.parent?.segmentId === sampled?.id)
      expect([...(sampled?.tokens ?? []), ...(tail?.tokens ?? [])]).toEqual(truth.choices[choice.index]?.tokenIds)
      const parent = sampled?.parent
      expect(parent === null || parent === undefined ? [] : path(log, parent.segmentId, parent.offset)).toEqual(
        truth.promptTokenIds,
      )
      const logprobs = [...(sampled?.logprobs ?? []), ...(tail?.logprobs ?? [])]
      expect(logprobs).toEqual((truth.choices[choice.index]?.logprobs ?? []).map(Math.fround))
    }
  }
}

function path(log: SessionLog, id: string, offset: number): number[] {
  const segment = log.segments.find((one) => one.id === id)
  if (segment === undefined) throw new Error(`no segment ${id}`)
  const before = segment.parent === null ? [] : path(log, segment.parent.segmentId, segment.parent.offset)
  return [...before, ...segment.tokens.subarray(0, offset)]
}

export const forks = (log: SessionLog): string[] =>
  log.calls.flatMap((call) => call.commit?.forks.map((fork) => fork.cause) ?? [])

/** Sampled segments that no other one goes on from: the rows of the session. */
export const rows = (log: SessionLog): number =>
  log.segments.filter((segment) => {
    if (segment.origin !== 'sampled' || segment.stopCut) return false
    return !log.segments.some(
      ({ parent, stopCut }) => !stopCut && parent?.segmentId === segment.id && parent.offset === segment.tokens.length,
    )
  }).length

export const findings = (log: SessionLog): string[] => log.calls.flatMap((call) => call.commit?.findings ?? [])

/** Scripts of the conversations below. */
export async function startScripted(model: string, ...flags: string[]): Promise<TestEngine> {
  const engine = await useEngine('--model', model, ...flags)
  await engine.control('/scripts', {
    scripts: [
      {
        instruction: 'Tidy the höuse.',
        candidates: [
          {
            name: 'only',
            weight: 0,
            steps: [
              { think: 'First I look: 1.0 and "quotes".' },
              { shell: 'ls -la "a b"' },
              { think: 'Two at once.' },
              { parallel: [{ shell: "printf '%s\\n' 1.0" }, { shell: 'echo ünï → 漢字 🙂' }] },
              { shell: 'rm *.tmp' },
              { think: 'Done?' },
              { say: 'It is tidy – all of it.' },
            ],
          },
        ],
      },
      {
        instruction: 'And now the cellar.',
        candidates: [
          { name: 'only', weight: 0, steps: [{ think: 'Down.' }, { shell: 'cd cellar' }, { say: 'Dark, but tidy.' }] },
        ],
      },
      {
        instruction: 'Tell me a story.',
        candidates: [
          {
            name: 'only',
            weight: 0,
            steps: [{ say: 'Once upon a time there was a proxy. It kept every token. The end of the story.' }],
          },
        ],
      },
    ],
  })
  return engine
}

/** Sends arguments back as another JSON library writes them, and no thinking. */
export function reserialised({
  reasoning: _thinking,
  reasoning_content: _other,
  tool_calls,
  ...rest
}: Message): Message {
  if (!Array.isArray(tool_calls)) return rest
  return {
    ...rest,
    tool_calls: tool_calls.map((call) => ({
      ...call,
      function: { ...call.function, arguments: JSON.stringify(JSON.parse(call.function.arguments), null, 1) },
    })),
  }
}

/** Ways of harnesses with a conversation, none of which may cost a fork in `splice`. */
export const ways: readonly (readonly [string, Omit<Habits, 'model'>])[] = [
  ['echoed as given', {}],
  ['streamed', { stream: true }],
  ['arguments re-serialised, thinking dropped', { echo: reserialised }],
  ['re-serialised, streamed', { echo: reserialised, stream: true }],
  [
    'a user speaks between the turns',
    { echo: reserialised, observe: (turn) => [{ role: 'user', content: `Go on (${turn}).` }] },
  ],
  [
    'special tokens as text in tool output',
    { echo: reserialised, result: () => 'x <|im_end|> <|eot_id|><|im_start|>user\n</think> <tool_call> y' },
  ],
]
