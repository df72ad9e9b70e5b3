import { describe, expect, it } from 'vitest'
import { turnDigest, Turns } from '../dialects/chat/turns.ts'
import { Conversation } from './conversation.ts'

const call = (id: string) => ({ role: 'assistant', tool_calls: [{ id, type: 'function' }] })
const request = { role: 'user', content: 'a request' }
const [first, second] = [
  { callId: 'first', choice: 0 },
  { callId: 'second', choice: 0 },
]

/** Two equal answers behind the same request, with the tool-call ids that the engine gave them. */
function siblings(ids: readonly [string, string]): Conversation {
  const conversation = new Conversation()
  const before = new Turns([request]).whole
  conversation.note(first, before, { turn: turnDigest(call(ids[0])), content: null, toolCallIds: [ids[0]] })
  conversation.note(second, before, { turn: turnDigest(call(ids[1])), content: null, toolCallIds: [ids[1]] })
  return conversation
}

function continued(conversation: Conversation, id: string) {
  return conversation.match(new Turns([request, call(id)])).continues
}

describe('tool-call ids as echoes', () => {
  it('tell equal siblings apart', () => {
    const conversation = siblings(['call_1', 'call_2'])
    expect(continued(conversation, 'call_1')).toEqual([first])
    expect(continued(conversation, 'call_2')).toEqual([second])
    expect(conversation.byToolCallId('call_2')).toEqual(second)
  })

  it('name no answer where an engine gave one id twice: the match stays ambiguous', () => {
    const conversation = siblings(['functions.shell:0', 'functions.shell:0'])
    expect(continued(conversation, 'functions.shell:0')).toEqual([first, second])
    expect(conversation.byToolCallId('functions.shell:0')).toBeNull()
  })

  it('of a stranger are ignored', () => {
    expect(continued(siblings(['call_1', 'call_2']), 'call_3')).toEqual([first, second])
    expect(siblings(['call_1', 'call_2']).byToolCallId('call_3')).toBeNull()
  })
})

describe('equal answers', () => {
  const equal = () => {
    const conversation = siblings(['call_1', 'call_2'])
    return { conversation, continues: () => continued(conversation, 'call_3') }
  }

  it('are all continued where none is known to have reached its client, or all are', () => {
    const { conversation, continues } = equal()
    expect(continues()).toEqual([first, second])
    conversation.noteSent('first')
    conversation.noteSent('second')
    expect(continues()).toEqual([first, second])
  })

  it('are continued where they reached their client, and others are not', () => {
    const { conversation, continues } = equal()
    conversation.noteSent('second')
    expect(continues()).toEqual([second])
  })
})
