import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toJson } from '../src/json/lossless.ts'
import { answerParser, joinParts, parseWhole } from '../src/parsers/index.ts'
import { answerText } from '../src/policy/answer-text.ts'
import { loadProfile, profileNames } from '../src/profiles.ts'
import type { ToolChoice } from '../src/parsers/index.ts'

const AUTO: ToolChoice = { kind: 'auto' }
const args = fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 2 })).map((value) => toJson(value))
/** Prose that holds no tag of its own. */
const prose = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replaceAll(/[<{]/g, '(').trim())
const calls = fc.array(fc.record({ name: fc.constantFrom('bash', 'read_file', 'a "quoted" name'), args }), {
  maxLength: 3,
})
const plan = fc.record({ think: prose, say: prose, calls })

function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % (text.length + 1)), text.length].toSorted((a, b) => a - b)
  return at.slice(1).map((end, index) => text.slice(at[index], end))
}

describe.each(profileNames)('parsers of %s', (model) => {
  const profile = loadProfile(model)

  it('read back what the policy writes', () => {
    fc.assert(
      fc.property(plan, ({ think, say, calls: planned }) => {
        const given = planned.map((call) => ({
          name: call.name,
          args: call.args instanceof Map ? call.args : new Map(),
        }))
        const answer = parseWhole(
          answerParser(profile, AUTO, false),
          answerText(profile, { think, say, calls: given }, { kind: 'free' }),
        )
        expect(answer.calls.map((call) => ({ name: call.name, args: JSON.parse(call.arguments) as unknown }))).toEqual(
          planned.map((call) => ({ name: call.name, args: JSON.parse(JSON.stringify(toPlain(call.args))) as unknown })),
        )
        expect((answer.content ?? '').trim()).toBe(say)
        expect(answer.reasoning).toBe(profile.thinks && think !== '' ? think : null)
      }),
    )
  })

  it('do not depend on how the text was cut', () => {
    const anyText = fc.oneof(
      plan.map(({ think, say, calls: planned }) =>
        answerText(
          profile,
          {
            think,
            say,
            calls: planned.map((call) => ({ name: call.name, args: call.args instanceof Map ? call.args : new Map() })),
          },
          { kind: 'free' },
        ),
      ),
      fc
        .array(
          fc.constantFrom(
            '<think>',
            '</think>',
            '<tool_call>',
            '</tool_call>',
            '<|python_tag|>',
            '\n',
            '{"name": "x", ',
            '"arguments": {"a": "}"}',
            '}',
            ' ',
            'text',
            '{"a"',
            '; ',
            '<',
          ),
        )
        .map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(anyText, fc.array(fc.nat(400), { maxLength: 12 }), fc.boolean(), (text, places, open) => {
        const parser = answerParser(profile, AUTO, open)
        const pieces = cut(text, places).flatMap((piece) => parser.push(piece))
        expect(joinParts([...pieces, ...parser.end()])).toEqual(parseWhole(answerParser(profile, AUTO, open), text))
      }),
      { numRuns: 500 },
    )
  })

  it('leave text alone that only looks like a call', () => {
    const text = `${profile.callTags.open}\nnot json}`
    expect(parseWhole(answerParser(profile, AUTO, false), text)).toEqual({ reasoning: null, content: text, calls: [] })
    expect(
      parseWhole(answerParser(profile, { kind: 'none' }, false), `${profile.callTags.open}{"name": "x"}`).calls,
    ).toEqual([])
  })

  it('keep argument text as it was sampled', () => {
    const key = profile.argumentsKey
    const close = profile.callTags.close ?? ''
    const text = `${profile.callTags.open}{"name": "x", "${key}": {"n": 1.0, "big": 12345678901234567890,  "s": "}\\""}}${close}`
    expect(parseWhole(answerParser(profile, AUTO, false), text).calls[0]?.arguments).toBe(
      '{"n": 1.0, "big": 12345678901234567890,  "s": "}\\""}',
    )
  })
})

describe('forced tool choice', () => {
  const profile = loadProfile('scripted-hermes')
  it('reads a JSON list for required, and bare arguments for a named tool', () => {
    const required = parseWhole(
      answerParser(profile, { kind: 'required' }, false),
      '[{"name": "a", "parameters": {"x": 1}}, {"name": "b", "parameters": {}}]',
    )
    expect(required.calls).toEqual([
      { name: 'a', arguments: '{"x": 1}' },
      { name: 'b', arguments: '{}' },
    ])
    const named = parseWhole(
      answerParser(profile, { kind: 'named', name: 'bash' }, false),
      '<think>\nhm\n</think>\n\n{"command": "ls"}',
    )
    expect(named).toEqual({ reasoning: 'hm', content: null, calls: [{ name: 'bash', arguments: '{"command": "ls"}' }] })
  })
})

function toPlain(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, toPlain(item)]))
  if (Array.isArray(value)) return value.map(toPlain)
  return typeof value === 'object' && value !== null && 'value' in value ? value.value : value
}
