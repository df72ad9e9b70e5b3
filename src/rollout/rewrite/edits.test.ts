import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rewriteSchema, rewritten } from './edits.ts'

const call = (id: string) =>
  `{"role":"assistant","content":null,"tool_calls":[{"id":"${id}","type":"function","function":{"name":"sh","arguments":"{\\"n\\": 1.0}"}}]}`
const result = (id: string) => `{"role":"tool","tool_call_id":"${id}","content":"said"}`
const messages = [
  '{"role":"user","content":"How many?",  "n": 1.0}',
  call('a'),
  result('a'),
  call('b'),
  result('b'),
  '{"role":"assistant","content":"41"}',
]
const edit = (edits: unknown, more: object = {}) =>
  rewritten(messages, rewriteSchema.parse({ by: 'me', edits, ...more }), 'file#1')
const say = (content: string) => ({ role: 'assistant', content })

describe('edits of a conversation', () => {
  it('replace an answer, and leave all other words as they came', () => {
    const made = edit([{ from: 5, messages: [say('42')] }])
    expect(made.messages).toEqual([...messages.slice(0, 5), '{"role":"assistant","content":"42"}'])
    expect(made.first).toBe(5)
  })

  it('take a failed call out, cut the rest off, and put something between', () => {
    expect(edit([{ from: 1, to: 3, messages: [] }]).messages).toEqual([messages[0], ...messages.slice(3)])
    expect(edit([{ from: 3, to: null, messages: [say('42')] }]).messages).toHaveLength(4)
    const made = edit([
      { from: 5, to: 5, messages: [say('wait'), { role: 'user', content: 'go on' }] },
      { from: 1, to: 3, messages: [] },
    ])
    expect(made.messages).toHaveLength(6)
    expect(made.first).toBe(1)
  })

  it('of weight alone: what was there before is context', () => {
    const made = edit([{ from: 5, messages: [say('42')] }], { trains: 'edits' }).messages.map((text) =>
      JSON.parse(text),
    )
    expect(made.map(({ weight }) => weight)).toEqual([undefined, 0, undefined, 0, undefined, undefined])
  })

  it.each([
    [
      'beyond the end',
      [{ from: 6, messages: [say('x')] }],
      /edits.0 is of messages \[6, 7\), and the conversation has 6/,
    ],
    ['backwards', [{ from: 3, to: 2, messages: [] }], /edits.0 is of messages/],
    [
      'over another',
      [
        { from: 1, to: 3, messages: [] },
        { from: 2, messages: [] },
      ],
      /edits.1 .* another edit takes away/,
    ],
    [
      'that leave a result alone',
      [{ from: 1, messages: [] }],
      /message 1 is the result of a tool call that does not stand/,
    ],
    ['that leave a call alone', [{ from: 2, messages: [] }], /message 2 comes before the result of the tool call a/],
    ['that end without an answer', [{ from: 5, messages: [] }], /does not end with an answer/],
    ['that change nothing', [{ from: 5, messages: [say('41')] }], /nothing is other than before/],
  ])('are refused %s', (_, edits, words) => {
    expect(() => edit(edits)).toThrow(words)
  })

  it('are refused by their form', () => {
    for (const wrong of [
      {},
      { by: 'me' },
      { by: 'me', edits: [] },
      { by: 'me', edits: [{ from: 0, messages: [{}] }] },
    ]) {
      expect(rewriteSchema.safeParse(wrong).success).toBe(false)
    }
    expect(rewriteSchema.safeParse({ by: 'me', edits: [{ from: 0, messages: [say('x')] }], unknown: 1 }).success).toBe(
      false,
    )
  })

  it('keep every message that no edit is of, byte for byte and in order', () => {
    const chats = Array.from(
      { length: 12 },
      (_, i) => `{"role":"${i % 2 === 0 ? 'user' : 'assistant'}", "content":"${i}"}`,
    )
    const cut = fc.tuple(fc.nat(11), fc.nat(3)).map(([from, more]) => ({ from, to: Math.min(11, from + more) }))
    fc.assert(
      fc.property(cut, fc.array(fc.string(), { maxLength: 3 }), (range, texts) => {
        const edits = [{ ...range, messages: texts.map((content) => ({ role: 'user', content })) }]
        fc.pre(range.to > range.from || texts.length > 0)
        const made = rewritten(chats, rewriteSchema.parse({ by: 'me', edits }), 'p')
        expect(made.messages.slice(0, range.from)).toEqual(chats.slice(0, range.from))
        expect(made.messages.slice(range.from + texts.length)).toEqual(chats.slice(range.to))
      }),
    )
  })
})
