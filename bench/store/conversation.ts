/**
 * A made-up conversation whose sizes behave like a real one: words by a Zipf law with phrases that come again, a token
 * per word, bodies that grow inside `messages` while tools stand behind, replies as server-sent events.
 */
import type { ReplyMark } from '../../src/trajectory/index.ts'

/** Tokens per turn. */
export interface Shape {
  readonly turns: number
  readonly firstPrompt: number
  readonly prompt: number
  readonly sampled: number
}

/** One call. */
export interface Turn {
  readonly body: string
  /** The whole prompt. */
  readonly prompt: Int32Array
  /** What it adds to the turn before and its answer. */
  readonly newPrompt: Int32Array
  readonly sampled: Int32Array
  readonly logprobs: Float32Array
  readonly reply: Uint8Array
  readonly replyMarks: readonly ReplyMark[]
}

/** Calls of one append-only session. */
export interface Conversation {
  readonly turns: readonly Turn[]
}

const vocabulary = 100_000

/** The same conversation for the same shape. */
export function conversation(shape: Shape): Conversation {
  const random = generator(7)
  const turns: Turn[] = []
  const messages: string[] = []
  let context: number[] = []
  const tools = `"tools":[${Array.from({ length: 14 }, (_, n) => tool(n)).join(',')}],"temperature":0.7,"stream":true}`
  for (let turn = 0; turn < shape.turns; turn += 1) {
    const asked = words(random, turn === 0 ? shape.firstPrompt : shape.prompt)
    const answered = words(random, shape.sampled)
    messages.push(JSON.stringify({ role: turn === 0 ? 'user' : 'tool', content: text(asked) }))
    const body = `{"model":"m","messages":[${messages.join(',')}],${tools}`
    messages.push(JSON.stringify({ role: 'assistant', content: text(answered) }))
    const prompt = Int32Array.from([...context, ...asked])
    context = [...prompt, ...answered]
    turns.push({
      body,
      prompt,
      newPrompt: Int32Array.from(asked),
      sampled: Int32Array.from(answered),
      // Half of what a trained model says is nearly certain.
      logprobs: Float32Array.from(answered, () => (random() < 0.5 ? -random() * 1e-3 : -random() * 3)),
      ...streamed(answered, random),
    })
  }
  return { turns }
}

function words(random: () => number, count: number): number[] {
  const out: number[] = []
  while (out.length < count) {
    // Code and tool output repeat themselves: a third comes from what stands just before.
    if (out.length > 32 && random() < 0.04) {
      const from = Math.floor(random() * (out.length - 16))
      out.push(...out.slice(from, from + 12))
    } else {
      out.push(Math.floor(vocabulary ** random()))
    }
  }
  return out.slice(0, count)
}

function text(ids: readonly number[]): string {
  return ids.map(word).join(' ')
}

/** Frequent words are short, as in any language. */
function word(id: number): string {
  return (id * 7919).toString(36).slice(0, 1 + Math.floor(Math.log10(id + 1)))
}

function tool(n: number): string {
  return JSON.stringify({
    type: 'function',
    function: { name: `tool_${n}`, description: text(words(generator(n + 1), 60)), parameters: { type: 'object' } },
  })
}

function streamed(ids: readonly number[], random: () => number): Pick<Turn, 'reply' | 'replyMarks'> {
  const replyMarks: ReplyMark[] = []
  let reply = ''
  let atMs = 80
  for (const id of ids) {
    replyMarks.push({ offset: reply.length, atMs })
    atMs += 15 + random() * 10
    const delta = JSON.stringify({ content: ` ${word(id)}` })
    reply += `data: {"id":"chatcmpl-5f1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`
  }
  return { reply: Buffer.from(`${reply}data: [DONE]\n\n`), replyMarks }
}

/** Park-Miller, in [0, 1). */
function generator(seed: number): () => number {
  let state = seed * 7919 + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
