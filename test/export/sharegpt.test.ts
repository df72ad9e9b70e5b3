/** What ShareGPT cannot say is named, and never said as something else. */
import { expect, it } from 'vitest'
import { turnsOf } from '../../src/trajectory/export/sharegpt/turns.ts'

const user = { role: 'user', content: 'go' }
const done = { role: 'assistant', content: 'done' }
const call = (id: string, text = '{"n": 1.0}') => ({ id, type: 'function', function: { name: 'sh', arguments: text } })
const calls = (...made: readonly object[]) => ({ role: 'assistant', content: null, tool_calls: made })
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'ok' })
const said = (messages: readonly object[], strict = true) =>
  turnsOf(
    messages.map((one) => JSON.stringify(one)),
    strict,
  )

it('says calls with the arguments as they were written', () => {
  expect(said([{ role: 'system', content: 's' }, user, calls(call('1')), result('1'), done])).toEqual({
    system: 's',
    conversations: [
      { from: 'human', value: 'go' },
      { from: 'function_call', value: '{"name":"sh","arguments":{"n": 1.0}}' },
      { from: 'observation', value: 'ok' },
      { from: 'gpt', value: 'done' },
    ],
  })
})

it.each([
  ['media', [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }, done]],
  ['text_beside_call', [user, { ...calls(call('1')), content: 'I look.' }, result('1'), done]],
  ['parallel_calls', [user, calls(call('1'), call('2')), result('1'), result('2'), done]],
  ['arguments', [user, calls(call('1', 'ls')), result('1'), done]],
  ['arguments', [user, calls(call('1', '[1]')), result('1'), done]],
  ['system_inside', [user, done, { role: 'system', content: 'now' }, user, done]],
  ['order', [user, user, done]],
  ['order', [user, done, user]],
  ['order', [done]],
])('leaves out, as %s, what it cannot say', (reason, messages) => {
  expect(said(messages)).toBe(reason)
})

it('says what LLaMA-Factory does not take where it is asked to', () => {
  expect(
    said([user, { ...calls(call('1'), call('2')), content: 'I look.' }, result('1'), result('2'), done], false),
  ).toMatchObject({
    conversations: [
      { from: 'human' },
      { from: 'gpt', value: 'I look.' },
      { from: 'function_call', value: '[{"name":"sh","arguments":{"n": 1.0}},{"name":"sh","arguments":{"n": 1.0}}]' },
      { from: 'observation' },
      { from: 'observation' },
      { from: 'gpt' },
    ],
  })
})
