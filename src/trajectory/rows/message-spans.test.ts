import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CallRecord, Segment, SessionLog } from '../contract/index.ts'
import type { MessageSpan, RowSegment } from '../rows-contract.ts'
import { MessageSpans, observationMask, toolStatuses } from './message-spans.ts'

interface Said {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string
  readonly tool_call_id?: string
  readonly tool_calls?: readonly unknown[]
}

/** What a template makes of a message, and which of it are the message's own words. */
type Template = (message: Said) => readonly { readonly text: string; readonly own?: Said }[]

const chatMl: Template = (said) => [
  { text: `<|im_start|>${said.role}\n` },
  { text: said.content.trim(), own: said },
  { text: '<|im_end|>\n' },
]

const inJson: Template = (said) => [
  { text: `[${said.role}] {"output": "` },
  { text: JSON.stringify(said.content.trim()).slice(1, -1), own: said },
  { text: '"}<end>' },
]

/** A conversation through a template, cut into tokens of `size` bytes, with an answer where the assistant speaks. */
function rendered(template: Template, messages: readonly Said[], size: number) {
  const encoder = new TextEncoder()
  const texts = new Map<number, Uint8Array>()
  const ids = new Map<string, number>()
  const row: number[] = []
  const owners: (Said | null)[][] = []
  const segments: RowSegment[] = []
  const stored: Segment[] = []
  const calls: CallRecord[] = []
  let pending: { byte: number; own: Said | null }[] = []
  const cut = (origin: 'prompt' | 'sampled', callId: string): void => {
    const start = row.length
    for (let at = 0; at < pending.length; at += size) {
      const part = pending.slice(at, at + size)
      const bytes = Uint8Array.from(part, ({ byte }) => byte)
      const id = ids.get(bytes.join()) ?? ids.size
      ids.set(bytes.join(), id)
      // A token that holds a part of a character has no text of its own.
      if (!Buffer.from(bytes).toString().includes('\ufffd')) texts.set(id, bytes)
      row.push(id)
      owners.push(part.map(({ own }) => own))
    }
    pending = []
    const segmentId = `${origin}${segments.length}`
    const choice = origin === 'sampled' ? 0 : null
    segments.push({
      segmentId,
      origin,
      callId,
      callClass: 'main',
      choice,
      start,
      end: row.length,
      trained: origin === 'sampled',
      maskReason: null,
    })
    stored.push({ id: segmentId, tokens: Int32Array.from(row.slice(start)) } as unknown as Segment)
  }
  const put = (text: string, own: Said | null): void => {
    for (const byte of encoder.encode(text)) pending.push({ byte, own })
  }
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'assistant') {
      for (const { text, own } of template(message)) put(text, own ?? null)
      continue
    }
    const id = `c${at}`
    const body = encoder.encode(JSON.stringify({ model: 'm', messages: messages.slice(0, at) }))
    calls.push({ intent: { id, body } } as unknown as CallRecord)
    put('<assistant>', null)
    cut('prompt', id)
    put(`${message.content}<end>`, null)
    cut('sampled', id)
  }
  const log = { calls, segments: stored } as unknown as SessionLog
  return { log, texts, row: { tokens: Int32Array.from(row), segments }, owners }
}

function spansOf(
  { log, texts, row }: ReturnType<typeof rendered>,
  statuses: ReadonlyMap<string, 'ok' | 'error'> = new Map(),
): readonly MessageSpan[] {
  const source = { log, texts, statuses, view: 'as_sampled' as const }
  return new MessageSpans({ ...source, readRequest: (_, { intent }) => intent.body }).of(row)
}

const words = fc.oneof(
  fc
    .array(fc.constantFrom('a', 'b', 'ab', ' ', '\n', '"', '€', 'user', '🙂'), { maxLength: 6 })
    .map((all) => all.join('')),
  fc.string({ maxLength: 40, unit: 'grapheme' }),
  fc.nat(10 ** 9).map((number) => `line ${number}\n\tsays "${number}"!`),
)
const said = fc.record<Said>({ role: fc.constantFrom('system', 'user', 'tool', 'assistant'), content: words })

describe('whose the tokens of a row are', () => {
  it('is never told wrongly, whatever is said in whatever pieces', () => {
    let told = 0
    fc.assert(
      fc.property(
        fc.array(said, { maxLength: 6 }),
        fc.constantFrom(chatMl, inJson),
        fc.integer({ min: 1, max: 7 }),
        (messages, template, size) => {
          const made = rendered(template, [...messages, { role: 'assistant', content: 'end' }], size)
          const spans = spansOf(made)
          expect(spans.map(({ start }) => start)).toEqual([0, ...spans.map(({ end }) => end)].slice(0, spans.length))
          expect(spans.at(-1)?.end).toBe(made.row.tokens.length)
          for (const { start, end, part, role } of spans) {
            const owners = new Set(made.owners.slice(start, end).flat())
            if (part === 'content') {
              told += 1
              expect([...owners].map((own) => own?.role)).toEqual([role])
            }
            // A token that is partly scaffold is scaffold.
            if (part === 'scaffold') {
              for (const token of made.owners.slice(start, end)) expect(token.every((own) => own !== null)).toBe(false)
            }
          }
        },
      ),
      { seed: 20_261_126, numRuns: 3000 },
    )
    expect(told).toBeGreaterThan(1000)
  })

  it('finds each message of an agent with its tools', () => {
    const made = rendered(
      chatMl,
      [
        { role: 'system', content: 'You work in a box.' },
        { role: 'user', content: 'What is in it?' },
        call('a', 'ls'),
        { role: 'tool', content: 'one.txt ! 1\ntwo.txt', tool_call_id: 'a' },
        call('b', 'cat'),
        { role: 'tool', content: 'no such file', tool_call_id: 'b' },
        { role: 'assistant', content: 'Two files.' },
      ],
      2,
    )
    const spans = spansOf(made, toolStatuses([toolResult('a', 'ok'), toolResult('b', 'error')]) as never)
    expect(
      spans.map(({ role, part, tool, status }) => [
        part,
        ...(role === null ? [] : [role]),
        ...(tool === null ? [] : [tool, status]),
      ]),
    ).toEqual([
      ['scaffold'],
      ['content', 'system'],
      ['scaffold'],
      ['content', 'user'],
      ['scaffold'],
      ['answer', 'assistant'],
      ['scaffold'],
      ['content', 'tool', 'ls', 'ok'],
      ['scaffold'],
      ['answer', 'assistant'],
      ['scaffold'],
      ['content', 'tool', 'cat', 'error'],
      ['scaffold'],
      ['answer', 'assistant'],
    ])
    const mask = observationMask(made.row.tokens.length, spans)
    const texts = [...made.row.tokens].map(
      (id, at) => (mask[at] === 1 ? made.texts.get(id) : undefined) ?? new Uint8Array(),
    )
    // Letters that share a token with the scaffold are scaffold.
    expect(Buffer.concat(texts).toString()).toBe('ne.txt ! 1\ntwo.txt')
  })

  it('claims nothing where a template left a message out, or the texts of its tokens are not known', () => {
    const messages: readonly Said[] = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'brief' },
      { role: 'assistant', content: 'ok' },
    ]
    const without = rendered((one) => (one.role === 'system' ? [{ text: '<s>' }] : chatMl(one)), messages, 3)
    const untold = rendered(chatMl, messages, 3)
    for (const made of [without, { ...untold, texts: new Map() }]) {
      expect(spansOf(made).map(({ part }) => part)).toEqual(['unknown', 'answer'])
    }
  })
})

function call(id: string, name: string): Said {
  return { role: 'assistant', content: 'I look.', tool_calls: [{ id, function: { name, arguments: '{}' } }] }
}

function toolResult(toolCallId: string, status: 'ok' | 'error') {
  const of = { id: toolCallId, at: 0, rolloutId: null, sessionId: null, callId: null }
  return { ...of, kind: 'tool_result', toolCallId, tool: 'x', status, durationMs: 1, result: '' } as const
}
