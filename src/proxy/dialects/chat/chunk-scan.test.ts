import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyEdits, readIds, scanChunk } from './chunk-scan.ts'
import { ToolDeltas } from './tool-deltas.ts'

type Loose = Record<string, unknown>

/** Members in any order, with noise that looks like the fields that are cut. */
const shuffled = (members: Record<string, fc.Arbitrary<unknown>>) =>
  fc
    .record(members, { requiredKeys: [] })
    .chain((value) => fc.shuffledSubarray(Object.entries(value), { minLength: Object.keys(value).length }))
    .map((entries) => Object.fromEntries(entries))
const tricky = fc.oneof(fc.string(), fc.constantFrom('"token_ids":[1]', '{"finish_reason":"stop"}', '\\"', ']}'))
const ids = fc.array(fc.nat(200_000), { maxLength: 5 })
const choice = shuffled({
  index: fc.nat(3),
  delta: shuffled({ content: tricky, role: fc.constant('assistant'), token_ids: fc.constant('kept: not ours') }),
  logprobs: fc.option(fc.record({ content: fc.array(fc.record({ token: tricky, logprob: fc.constant(-0.5) })) })),
  token_ids: fc.option(ids),
  finish_reason: fc.constantFrom(null, 'stop', 'length'),
  extra: fc.json(),
})
const chunk = shuffled({
  id: tricky,
  choices: fc.array(choice, { maxLength: 3 }),
  prompt_token_ids: fc.option(ids),
  usage: fc.option(fc.constant({ completion_tokens: 3 })),
  x: fc.json(),
})
const spaced = fc.tuple(chunk, fc.constantFrom(undefined, 1))

describe('scanChunk', () => {
  it('shows the client everything but what was injected, whatever the order and white space', () => {
    fc.assert(
      fc.property(spaced, fc.boolean(), fc.boolean(), ([value, space], wantsLogprobs, wantsUsage) => {
        const bytes = Buffer.from(JSON.stringify(value, null, space))
        const facts = scanChunk(bytes, { wantsLogprobs, wantsUsage })
        const { prompt_token_ids: promptIds, usage, ...rest } = value as Loose
        const choices = (value as { choices?: Loose[] }).choices
        const expected: Loose = { ...rest, ...(wantsUsage && usage !== undefined ? { usage } : {}) }
        if (choices !== undefined) {
          expected['choices'] = choices.map(({ token_ids: _ids, ...kept }) =>
            'logprobs' in kept && !wantsLogprobs ? { ...kept, logprobs: null } : kept,
          )
        }
        expect(JSON.parse(applyEdits(bytes, facts.edits).toString())).toEqual(expected)
        expect(facts.finishes).toBe((choices ?? []).some((one) => typeof one['finish_reason'] === 'string'))
        const found = facts.promptIds === null ? null : readIds(bytes, facts.promptIds.start, facts.promptIds.end)
        expect(found === null ? null : [...found]).toEqual(promptIds ?? null)
      }),
      { numRuns: 400 },
    )
  })

  it('leaves a chunk alone that has nothing to hide', () => {
    const bytes = Buffer.from('{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}')
    expect(applyEdits(bytes, scanChunk(bytes, { wantsLogprobs: false, wantsUsage: false }).edits)).toBe(bytes)
  })
})

describe('readIds', () => {
  it('gives ids that stay as they are, however many are read after them', () => {
    const lists = [0, 1, 1023, 1024, 1025, 5000, 17_000, ...Array.from({ length: 40 }, (_, i) => 100 * i)]
    const read = lists.map((length, list) => {
      const text = Buffer.from(`[${Array.from({ length }, (_, i) => i + list).join(',')}]`)
      return readIds(text, 0, text.length)
    })
    for (const [list, length] of lists.entries()) {
      expect(Array.from(read[list] ?? [])).toEqual(Array.from({ length }, (_, i) => i + list))
    }
  })
})

describe('ToolDeltas', () => {
  const delta = (call: Loose) =>
    Buffer.from(JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] } }] }))
  const callOf = (bytes: Buffer) => JSON.parse(bytes.toString()).choices[0].delta.tool_calls[0]

  it('leaves deltas alone that follow the OpenAI contract', () => {
    const tools = new ToolDeltas(false, () => 'minted')
    const first = delta({ id: 'a', type: 'function', function: { name: 'f', arguments: '' } })
    const later = delta({ function: { arguments: '{"x":1.0}' } })
    expect(tools.complete(first)).toBe(first)
    expect(tools.complete(later)).toBe(later)
  })

  it('waits for the name, mints a missing id once, and drops nulls later on', () => {
    const tools = new ToolDeltas(false, () => 'minted')
    expect(callOf(tools.complete(delta({ function: { arguments: '{"a"' } })))).toEqual({ index: 0 })
    expect(callOf(tools.complete(delta({ function: { name: 'f', arguments: ':1' } })))).toEqual({
      index: 0,
      id: 'minted',
      type: 'function',
      function: { name: 'f', arguments: '{"a":1' },
    })
    expect(callOf(tools.complete(delta({ id: null, type: null, function: { name: null, arguments: '}' } })))).toEqual({
      index: 0,
      function: { arguments: '}' },
    })
  })

  it('repeats id, type and name for clients that check every delta', () => {
    const tools = new ToolDeltas(true, () => 'minted')
    tools.complete(delta({ id: 'a', type: 'function', function: { name: 'f', arguments: '' } }))
    expect(callOf(tools.complete(delta({ function: { arguments: '{}' } })))).toEqual({
      index: 0,
      id: 'a',
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    })
  })
})
