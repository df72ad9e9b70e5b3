import { z } from 'zod'
import type { ImportFormat } from './contract.ts'
import { keptFromTraining } from './may-train.ts'
import { parsed } from './parsed.ts'
import { RawObject } from './raw.ts'

const says = z.looseObject({
  from: z.enum(['system', 'human', 'user', 'gpt', 'assistant', 'function_call', 'observation', 'tool']),
  value: z.string(),
})
const schema = z.looseObject({
  conversations: z.array(says).min(1),
  system: z.string().nullish(),
  tools: z.union([z.string(), z.array(z.unknown())]).nullish(),
  task: z.string().nullish(),
  reward: z.number().nullish(),
  model: z.string().nullish(),
})
const call = z.looseObject({ name: z.string(), arguments: z.unknown() })

/**
 * ShareGPT: `{conversations: [{from, value}], system?, tools?}` with the words that LLaMA-Factory's `data/README.md` (v0.9) and Harbor's
 * export know. A `function_call` is one call or a list of calls; its calls get ids by their number, and the `observation` behind it
 * answers them in order.
 */
export const sharegptFormat: ImportFormat = {
  name: 'sharegpt',
  mark: 'conversations',
  summary: 'lines of {conversations: [{from, value}], system?, tools?}',
  read(text, place) {
    const value = parsed(schema, text, place)
    return {
      place,
      task: { name: value.task ?? null, instruction: null },
      reward: value.reward ?? null,
      model: value.model ?? null,
      labels: {},
      // Tools stand there as text or as they are.
      threads: [
        {
          messages: messagesOf(value, place),
          tools: typeof value.tools === 'string' ? value.tools || null : new RawObject(text).raw('tools'),
          of: 'main',
        },
      ],
    }
  },
}

/** The conversation as chat messages; a system's words come first. */
function messagesOf(value: z.infer<typeof schema>, place: string): readonly string[] {
  const messages: string[] = []
  if (value.system) messages.push(JSON.stringify({ role: 'system', content: value.system }))
  let waiting: string[] = []
  let calls = 0
  const answers: { readonly members: object; readonly place: string }[] = []
  for (const [at, turn] of value.conversations.entries()) {
    const { from, value: said } = turn
    if (answering.has(from)) answers.push({ members: turn, place: `${place}: conversations[${at}]` })
    if (from === 'function_call') {
      const made = callsOf(said, place).map((json) => ({ id: `call_${(calls += 1)}`, json }))
      waiting = made.map(({ id }) => id)
      const texts = made.map(({ id, json }) => callText(id, json))
      messages.push(`{"role":"assistant","content":null,"tool_calls":[${texts.join(',')}]}`)
    } else if (from === 'observation' || from === 'tool') {
      const id = waiting.shift()
      messages.push(
        JSON.stringify(
          id === undefined ? { role: 'user', content: said } : { role: 'tool', tool_call_id: id, content: said },
        ),
      )
    } else messages.push(JSON.stringify({ role: roles[from], content: said }))
  }
  return keptFromTraining(messages, answers, { members: value, place })
}

/** Who of a turn's words are an answer. */
const answering: ReadonlySet<string> = new Set(['gpt', 'assistant', 'function_call'])
const roles = { system: 'system', human: 'user', user: 'user', gpt: 'assistant', assistant: 'assistant' } as const

function callsOf(text: string, place: string): readonly RawObject[] {
  const calls = parsed(z.union([call, z.array(call).min(1)]), text, `${place}, a function_call`)
  if (!Array.isArray(calls)) return [new RawObject(text)]
  return new RawObject(`{"calls":${text}}`).elements('calls').map((one) => new RawObject(one))
}

function callText(id: string, json: RawObject): string {
  const given = json.raw('arguments') ?? '{}'
  // Arguments are text in a message, and here an object, or that text.
  const text = given.startsWith('"') ? given : JSON.stringify(given)
  return `{"id":"${id}","type":"function","function":{"name":${json.raw('name')},"arguments":${text}}}`
}
