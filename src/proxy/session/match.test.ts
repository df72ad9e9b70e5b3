import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { turnDigest, Turns } from '../dialects/chat/turns.ts'
import { type ContinuedAnswer, Conversation, type ConversationMatch } from './conversation.ts'

type Message = Readonly<Record<string, unknown>>
const user = (content: string): Message => ({ role: 'user', content })
const says = (content: string): Message => ({ role: 'assistant', content })
const calls = (id: string, command: string): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'shell', arguments: JSON.stringify({ command }) } }],
})

/** A conversation with what was answered in it; each answer is a call of its own unless it says otherwise. */
function told(
  answers: readonly { readonly behind: readonly Message[]; readonly answer: Message; readonly sent?: boolean }[],
): Conversation {
  const conversation = new Conversation()
  for (const [index, { behind, answer, sent = true }] of answers.entries()) {
    const made: unknown = answer['tool_calls']
    const ids = Array.isArray(made) ? made.map((call: { id: string }) => call.id) : []
    const before = new Turns(behind).whole
    conversation.note({ callId: `call ${index}`, choice: 0 }, before, {
      turn: turnDigest(answer),
      content: null,
      toolCallIds: ids,
    })
    if (sent) conversation.noteSent(`call ${index}`)
  }
  return conversation
}

function match(
  conversation: Conversation,
  messages: readonly Message[],
  handles?: ReadonlyMap<number, ContinuedAnswer>,
): ConversationMatch {
  return conversation.match(new Turns(messages), handles)
}

const of = (...numbers: number[]) => numbers.map((number) => ({ callId: `call ${number}`, choice: 0 }))
const first = [user('a')]
const second = [...first, says('b'), user('c')]

describe('which answer a request goes on from', () => {
  it('is the last one of an unbroken conversation, however long', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('x', 'y', 'z'), { minLength: 1, maxLength: 8 }), (words) => {
        const messages: Message[] = []
        const answers: { behind: Message[]; answer: Message }[] = []
        for (const [index, word] of words.entries()) {
          messages.push(user(word))
          const answer = says(`${index} ${word}`)
          answers.push({ behind: [...messages], answer })
          messages.push(answer)
        }
        const conversation = told(answers)
        const found = match(conversation, [...messages, user('more')])
        const last = words.length - 1
        expect(found).toMatchObject({ continues: of(last), edited: false, at: messages.length - 1 })
        // Every answer in it came back; each is reported once, and never again.
        expect(found.echoed.toSorted()).toEqual(
          of(...words.keys())
            .map(({ callId }) => callId)
            .toSorted(),
        )
        expect(match(conversation, [...messages, user('more')]).echoed).toEqual([])
      }),
    )
  })

  it('is told apart by what stands before it: equal words in another place are another answer', () => {
    const conversation = told([
      { behind: first, answer: says('b') },
      { behind: [user('other')], answer: says('b') },
    ])
    expect(match(conversation, [user('other'), says('b'), user('c')])).toMatchObject({
      continues: of(1),
      edited: false,
    })
    expect(match(conversation, [...first, says('b'), user('c')])).toMatchObject({ continues: of(0), edited: false })
  })

  it('is the delivered one of equal answers, and all of them where none is known to be delivered', () => {
    const equal = [
      { behind: first, answer: says('b'), sent: false },
      { behind: first, answer: says('b'), sent: true },
    ]
    expect(match(told(equal), second).continues).toEqual(of(1))
    const lost = equal.map((one) => ({ ...one, sent: false }))
    expect(match(told(lost), second).continues).toEqual(of(0, 1))
  })

  it('is the one whose handle came back, before anything else', () => {
    const conversation = told([
      { behind: first, answer: says('b') },
      { behind: first, answer: says('b') },
      { behind: first, answer: says('b') },
    ])
    expect(match(conversation, second, new Map([[1, { callId: 'call 1', choice: 0 }]])).continues).toEqual(of(1))
    // Another choice of the same call is another answer.
    expect(match(conversation, second, new Map([[1, { callId: 'call 1', choice: 1 }]])).continues).toEqual(of(0, 1, 2))
  })

  it('is the one whose tool-call ids came back', () => {
    const answers = ['one', 'two'].map((id) => ({ behind: first, answer: calls(id, 'ls') }))
    const result = { role: 'tool', tool_call_id: 'two', content: 'x' }
    expect(match(told(answers), [...first, calls('two', 'ls'), result]).continues).toEqual(of(1))
    expect(match(told(answers), [...first, calls('new', 'ls'), result]).continues).toEqual(of(0, 1))
  })

  it('of equal answers nobody may say that one came back', () => {
    const conversation = told([
      { behind: first, answer: says('b') },
      { behind: first, answer: says('b') },
    ])
    expect(match(conversation, second).echoed).toEqual([])
  })

  it('is said to be edited where something before it was changed', () => {
    const conversation = told([
      { behind: first, answer: says('b') },
      { behind: second, answer: says('d') },
    ])
    const changed = [user('A'), says('b'), user('c'), says('d'), user('e')]
    expect(match(conversation, changed)).toMatchObject({ continues: of(1), edited: true, at: 3 })
    // What is whole up to an earlier answer goes on from that one and is not edited.
    const tail = [...first, says('b'), user('C'), says('d'), user('e')]
    expect(match(conversation, tail)).toMatchObject({ continues: of(0), edited: false, at: 1 })
  })

  it('is known by its handle although its words were changed', () => {
    const conversation = told([{ behind: first, answer: says('b') }])
    const handle = new Map([[1, { callId: 'call 0', choice: 0 }]])
    const rewritten = [...first, says('quite other words'), user('c')]
    expect(match(conversation, rewritten, handle)).toMatchObject({ continues: of(0), edited: true, at: 1 })
    // Without it by its place: behind the request that it was the answer to.
    expect(match(conversation, rewritten)).toMatchObject({ continues: of(0), edited: true, at: 1 })
    expect(match(conversation, [user('other'), ...rewritten.slice(1)]).continues).toEqual([])
  })

  it('is the same turn however its arguments and content are written', () => {
    const call = (args: string, content: unknown): Message => ({
      role: 'assistant',
      content,
      tool_calls: [{ id: 'x', type: 'function', function: { name: 'shell', arguments: args } }],
    })
    const conversation = told([
      { behind: first, answer: call('{"command": "ls", "n": 1.0, "deep": {"a": [true]}}', null) },
    ])
    for (const back of [
      call('{"deep":{"a":[true]},"command":"ls","n":1}', ''),
      call('{\n "command": "ls",\n "deep": {"a": [true]},\n "n": 1e0\n}', null),
    ]) {
      expect(match(conversation, [...first, back, user('c')])).toMatchObject({ continues: of(0), edited: false, at: 1 })
    }
    const other = call('{"command":"ls","n":2,"deep":{"a":[true]}}', null)
    expect(match(conversation, [...first, other, user('c')]).edited).toBe(true)
  })

  it('is nobody’s where the words stand in another role', () => {
    const conversation = told([{ behind: first, answer: says('b') }])
    expect(match(conversation, [...first, user('b'), user('c')])).toMatchObject({ continues: [], at: -1 })
    const asSystem = [{ role: 'system', content: 'a' }, says('b'), user('c')]
    expect(match(conversation, asSystem)).toMatchObject({ continues: of(0), edited: true })
  })
})
