import { describe, expect, it } from 'vitest'
import { ChatBody } from '../../tokens/chat-body.ts'
import { PromptIds } from '../prompt-ids.ts'
import { completionBody, readCompletion } from './completion.ts'
import { messageOf } from './message.ts'

const chat = (more: object) => new ChatBody(Buffer.from(JSON.stringify({ messages: [], ...more })))
const asked = (more: object, spent = 0): unknown =>
  JSON.parse(completionBody(chat(more), new PromptIds(Int32Array.of(1, 2)), spent).toString())

describe('what is asked of /completion', () => {
  it('has the names of chat members there', () => {
    const more = { max_tokens: 9, temperature: 0.5, repetition_penalty: 1.1, top_logprobs: 4, stop: ['a'] }
    const rest = { n_predict: 9, temperature: 0.5, repeat_penalty: 1.1, n_probs: 4, stop: ['a'] }
    expect(asked(more)).toEqual({ prompt: [1, 2], return_tokens: true, stream: false, ...rest })
  })

  it('counts the beginning of an answer that it goes on with', () => {
    expect(asked({ max_completion_tokens: 9, max_tokens: 100 }, 4)).toMatchObject({ n_predict: 5, n_probs: 1 })
  })
})

describe('an answer of /completion', () => {
  const entry = (id: number, token: string, logprob: number) => ({ id, token, bytes: [...Buffer.from(token)], logprob })
  const read = (more: object) => readCompletion(Buffer.from(JSON.stringify(more)))?.parts[0]

  it('has an id, a logprob and a text for each token, the one that ends it too', () => {
    const told = [entry(7, 'Hi', -1), entry(2, '', -0.25)]
    const part = read({ content: 'Hi', tokens: [7, 2], stop_type: 'eos', completion_probabilities: told })
    expect(part).toMatchObject({ ids: [7, 2], logprobs: [-1, -0.25], finishReason: 'stop', stopReason: null })
  })

  it('has no logprob where a stop string took it, and the text of what it hides', () => {
    const told = [entry(7, 'Hi', -1)]
    const stopped = { stop_type: 'word', stopping_word: 'lo', content: 'HiHel' }
    const part = read({ ...stopped, tokens: [7, 8, 9], completion_probabilities: told })
    expect(part).toMatchObject({ ids: [7, 8, 9], logprobs: [-1, null, null], stopReason: 'lo', finishReason: 'stop' })
    expect(part?.entries.map(({ token }) => token)).toEqual(['Hi', 'Hello', ''])
  })

  it('has no logprob for a token that ends within a character, and the right ones behind it', () => {
    const told = [entry(7, 'Hi', -1), entry(9, '🙂', -0.5), entry(2, '', -0.25)]
    const part = read({ content: 'Hi🙂', tokens: [7, 8, 9, 2], stop_type: 'eos', completion_probabilities: told })
    expect(part?.logprobs).toEqual([-1, null, -0.5, -0.25])
    expect(part?.entries.map(({ token_id: id }) => id)).toEqual([7, 8, 9, 2])
  })

  it('gives no logprob to a token where it could be that of another one, or of none of them', () => {
    const told = [entry(7, 'a', -1), entry(9, 'b', -0.5), entry(2, '', -0.25)]
    const part = (tokens: readonly number[]) =>
      read({ content: 'ab', tokens, stop_type: 'eos', completion_probabilities: told })
    expect(part([7, 9, 9, 2])?.logprobs).toEqual([-1, null, null, -0.25])
    expect(part([7, 9, 3])?.logprobs).toEqual([null, null, null])
  })

  it('calls the lowest float no logprob, and a bound that was reached a length', () => {
    const part = read({
      content: 'Hi',
      tokens: [7],
      stop_type: 'limit',
      completion_probabilities: [entry(7, 'Hi', -3.4028234663852886e38)],
    })
    expect(part).toMatchObject({ logprobs: [null], finishReason: 'length' })
  })

  it('is none without tokens', () => {
    expect(readCompletion(Buffer.from('{"error":{"code":400}}'))).toBeNull()
    expect(readCompletion(Buffer.from('no'))).toBeNull()
  })
})

describe('an answer as a message', () => {
  const written =
    '<think>\nls?\n</think>\n\nLet me.\n<tool_call>\n{"name": "sh", "arguments": {"c": "ls"}}\n</tool_call>'

  it('has its thinking and its calls apart', () => {
    expect(messageOf(written, true, 'c0')).toMatchObject({
      content: 'Let me.',
      reasoning_content: 'ls?',
      tool_calls: [{ id: 'call_c00000', type: 'function', function: { name: 'sh', arguments: '{"c":"ls"}' } }],
    })
  })

  it('keeps as text what is no call, and calls where none were offered', () => {
    expect(messageOf(written, false, 'c0')).not.toHaveProperty('tool_calls')
    expect(messageOf('<tool_call>sh ls</tool_call>', true, 'c0').content).toBe('<tool_call>sh ls</tool_call>')
    expect(messageOf('<tool_call>{"arguments": {}}</tool_call>', true, 'c0')).not.toHaveProperty('tool_calls')
  })

  it('numbers several calls, and is null beside them where nothing else was said', () => {
    const call = '<tool_call>{"name": "a"}</tool_call>'
    const message = messageOf(call + call, true, 'c0')
    expect(message).toMatchObject({ content: null, tool_calls: [{ id: 'call_c00000' }, { id: 'call_c00001' }] })
  })
})
