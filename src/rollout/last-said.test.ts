import { describe, expect, it } from 'vitest'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../testing/store/index.ts'
import type { CallClass } from '../core/index.ts'
import type { SessionLog } from '../trajectory/index.ts'
import { lastSaid } from './last-said.ts'

type Said = readonly [CallClass, object | null, { readonly superseded?: true }?]

/** What a conversation of such answers ended with; null in place of one: it never came. */
async function saidAfter(...calls: readonly Said[]): Promise<string | null> {
  const session = sessionFact()
  const log: SessionLog = {
    session,
    closedAt: null,
    calls: calls.map(([callClass, message, more], seq) => {
      const intent = intentFact(session.id, seq, '{}', { callClass })
      const prompt = promptFact(intent, ids(2))
      const commit = commitFact(intent, [
        prompt,
        sampledFact(intent, ids(2), null, { segmentId: prompt.id, offset: 2 }),
      ])
      const choices = commit.choices.map((choice) => ({ ...choice, message: JSON.stringify(message) }))
      return {
        intent,
        commit: message === null ? null : { ...commit, choices },
        delivery: 'sent',
        superseded: more?.superseded ?? false,
      }
    }),
    segments: [],
    spans: [],
    events: [],
  }
  return lastSaid({ session: () => Promise.resolve(log) }, session.id)
}

const answer = (content: unknown) => ({ role: 'assistant', content })
const call = { ...answer('I look.'), tool_calls: [{ id: 'a', function: { name: 'look', arguments: '{}' } }] }

describe('what a conversation ended with', () => {
  it.each<[string, readonly Said[], string | null]>([
    [
      'its last answer',
      [
        ['main', call],
        ['main', answer('42')],
      ],
      '42',
    ],
    [
      'parts of one',
      [
        [
          'main',
          answer([
            { type: 'text', text: '4' },
            { type: 'text', text: '2' },
          ]),
        ],
      ],
      '42',
    ],
    [
      'nothing, where the last answer asks for a tool',
      [
        ['main', answer('41')],
        ['main', call],
      ],
      null,
    ],
    ['nothing, where it has no text', [['main', { ...answer(''), reasoning_content: 'hm' }]], null],
    ['nothing without answers', [['main', null]], null],
    [
      'what was said before side calls and sub-agents',
      [
        ['main', answer('42')],
        ['subagent', answer('saved')],
        ['title', answer('A sum')],
      ],
      '42',
    ],
    [
      'what its client got',
      [
        ['main', answer('42')],
        ['main', answer('43'), { superseded: true }],
      ],
      '42',
    ],
  ])('is %s', async (_what, calls, expected) => {
    expect(await saidAfter(...calls)).toBe(expected)
  })
})
