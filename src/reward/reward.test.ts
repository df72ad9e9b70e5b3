import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import type { Box } from '../sandbox/index.ts'
import {
  answerContains,
  answerF1,
  answerMatch,
  compose,
  directoryDigest,
  exact,
  hacked,
  isStarved,
  jsonEqual,
  jsonSchema,
  math,
  numeric,
  parseNumber,
  readRewardFiles,
  regex,
  type Rule,
  scored,
  set,
  unscored,
} from './index.ts'

const facts = { verifier: { id: 'v', version: '1', sha256: '0'.repeat(64) }, trust: 'host' as const }

describe('drafts', () => {
  it('never carry a number that is none', () => {
    for (const reward of [Number.NaN, Infinity, -Infinity]) {
      expect(scored(reward, facts)).toMatchObject({ status: 'unscorable', reward: null })
      expect(hacked(reward, facts)).toMatchObject({ status: 'unscorable', reward: null })
    }
    expect(unscored('infra_error', 'why', facts)).toMatchObject({ reward: null, reason: 'why' })
    expect(hacked(0, facts)).not.toHaveProperty('reason')
  })

  it('keep the end of long evidence', () => {
    const draft = scored(1, { ...facts, evidence: `${'x'.repeat(20_000)}the result` })
    expect(draft.evidence.length).toBeLessThan(10_000)
    expect(draft.evidence).toMatch(/the result$/)
  })
})

describe('composition', () => {
  const components = { tests: 1, style: 0.5, format: 0 }

  it('weights, multiplies, gates and stops at the first failing', () => {
    expect(compose(components, { kind: 'weighted', weights: { tests: 3, style: 1 } })).toEqual({
      ok: true,
      reward: 0.875,
    })
    expect(compose(components, { kind: 'product', of: ['tests', 'style'] })).toEqual({ ok: true, reward: 0.5 })
    const over = { kind: 'product', of: ['style'] } as const
    expect(compose(components, { kind: 'gate', gates: { tests: 1 }, over })).toEqual({ ok: true, reward: 0.5 })
    expect(compose(components, { kind: 'gate', gates: { format: 1 }, over })).toEqual({ ok: true, reward: 0 })
    expect(compose(components, { kind: 'first_failing', order: ['tests', 'style', 'format'] })).toEqual({
      ok: true,
      reward: 0.5,
    })
    expect(compose(components, { kind: 'first_failing', order: ['tests'] })).toEqual({ ok: true, reward: 1 })
  })

  it('gives no number for what nobody measured', () => {
    expect(compose(components, { kind: 'product', of: ['tests', 'speed'] })).toMatchObject({
      ok: false,
      reason: /speed/,
    })
    expect(compose({}, { kind: 'product' }).ok).toBe(false)
    expect(compose(components, { kind: 'weighted', weights: { tests: 0 } }).ok).toBe(false)
    expect(compose({ toString: 1 }, { kind: 'product', of: ['constructor'] }).ok).toBe(false)
    expect(compose({ a: Number.NaN }, { kind: 'product' }).ok).toBe(false)
  })
})

/** Values of answers by one rule, in their order. */
const values = async (rule: Rule, ...answers: readonly string[]): Promise<readonly number[]> =>
  (await Promise.all(answers.map(async (answer) => rule(answer)))).map(({ value }) => value)

describe('rules', () => {
  it('exact: one of the golds after normalisation', async () => {
    const rule = exact(['Paris', 'Lutetia'], { trim: true, lowerCase: true, spaces: true })
    expect(await values(rule, '  PARIS\n', 'Paris, I think')).toEqual([1, 0])
    expect(await values(exact('é'), 'e\u0301')).toEqual([1])
  })

  it('json: what is nested beyond all measure is a wrong answer, like any other', async () => {
    const open = (start: string, inner: string, end: string) => `${start.repeat(100_000)}${inner}${end.repeat(100_000)}`
    const nested = jsonSchema({ anyOf: [{ type: 'array', items: { $ref: '#' } }, { type: 'object' }] })
    for (const text of [open('[', '', ']'), open('{"a":', '1', '}'), open('[1,{"b":', '[]', '}]')]) {
      expect(await values(jsonEqual([1]), text)).toEqual([0])
      expect(await values(nested, text)).toEqual([0])
    }
    const deep = `${'['.repeat(250)}${']'.repeat(250)}`
    expect(await values(jsonEqual(JSON.parse(deep)), deep)).toEqual([1])
    expect(await values(jsonSchema({ type: 'array', items: { $ref: '#' } }), deep)).toEqual([1])
  })

  it('numeric: tolerance, separators, percent, and integers that doubles cannot tell apart', async () => {
    expect(await values(numeric(1234.5, { absolute: 0.01 }), '1,234.505')).toEqual([1])
    expect(await values(numeric(100, { relative: 0.05 }), '94.9')).toEqual([0])
    expect(await values(numeric(0.5), '50%')).toEqual([1])
    expect(await values(numeric('9007199254740993'), '9007199254740992')).toEqual([0])
    for (const text of ['', '1,2', '0x10', '1 2', 'NaN', 'Infinity', '1e999', 'about 3'])
      expect(parseNumber(text)).toBeNull()
  })

  it('numeric: by digits, however they are written, and bounds as they are meant', async () => {
    const apart = [
      ['9007199254740993', '9007199254740992.0'],
      ['10000000000000001', '1e16'],
      ['0', '1e-400'],
      ['1e-400', '0'],
      ['123456789012345678.5', '123456789012345678'],
    ] as const
    for (const [gold, given] of apart) expect(await values(numeric(gold), given), gold).toEqual([0])
    expect(await values(numeric('1e16'), '10,000,000,000,000,000.0')).toEqual([1])
    expect(await values(numeric('-5'), '\u22125')).toEqual([1])
    expect(await values(numeric(0.1), '0.10000000000000001')).toEqual([1])
    expect(await values(numeric(1, { absolute: 0.1 }), '1.1')).toEqual([1])
    expect(await values(numeric(0.3, { absolute: 0.1 }), '0.4')).toEqual([1])
    expect(await values(numeric(3, { relative: 0.1 }), '2.7', '2.69999999999999999999')).toEqual([1, 0])
    for (const absolute of [Number.NaN, Infinity, -1]) expect(() => numeric(1, { absolute })).toThrow(RangeError)
  })

  it('numeric: no text takes long', async () => {
    const texts = ['1e-999999999', `0.${'3'.repeat(900_000)}`, '9'.repeat(900_000), `3e-${'0'.repeat(900)}1`]
    expect(await values(numeric(3, { relative: 0.1 }), ...texts)).toEqual([0, 0, 0, 0])
  })

  it('regex: whole or part, and no state between calls', async () => {
    expect(await values(regex(/^a+$/gm), 'aaa', 'aaa')).toEqual([1, 1])
    expect(await values(regex(/b|ab/, { whole: true }), ' ab ', 'abc')).toEqual([1, 0])
  })

  it('regex: whole is the whole text with any flags', async () => {
    for (const flags of ['', 'm', 'ms', 'im', 'mu', 'mv']) {
      const whole = (source: string) => regex(new RegExp(source, flags), { whole: true })
      expect(await values(whole('a'), 'a', 'b\na', 'a\nb', 'b\r\na\u2028b'), flags).toEqual([1, 0, 0, 0])
      expect(await values(whole('^a$'), ' a\n', 'x\na\ny'), flags).toEqual([1, 0])
      expect(await values(whole('a|b'), 'ab', 'b'), flags).toEqual([0, 1])
    }
    expect(await values(regex(/a\n^b$/m, { whole: true }), 'a\nb', 'a\nb\nc')).toEqual([1, 0])
  })

  it('set: repeating gains nothing, listing everything costs', async () => {
    const [twice = 0, ...others] = await values(set(['a', 'b'], { score: 'f1' }), 'a\na\na', 'a\nb\nc\nd', '')
    expect(twice).toBeCloseTo(2 / 3)
    expect(others).toEqual([expect.closeTo(2 / 3), 0])
    expect(await values(set([], { score: 'f1' }), '\n')).toEqual([1])
    expect(await values(set(['a', 'b'], { score: 'all_or_nothing' }), 'b\na\n', 'a')).toEqual([1, 0])
  })

  it('set: F1 is symmetric and between 0 and 1', async () => {
    const items = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'))
    await fc.assert(
      fc.asyncProperty(items, items, async (left, right) => {
        const [value = Number.NaN] = await values(set(left, { score: 'f1' }), right.join('\n'))
        expect(await values(set(right, { score: 'f1' }), left.join('\n'))).toEqual([expect.closeTo(value)])
        expect(value).toBeGreaterThanOrEqual(0)
        expect(value).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('a text that is longer than is compared scores 0 with its length as the reason, and such a gold is refused', async () => {
    const told = (length: number, most: number) => ({
      value: 0,
      why: `the answer has ${length} characters; at most ${most} are compared`,
    })
    const long = 'x'.repeat(1_000_001)
    const rules = [exact('x'), regex(/x/, { maxLength: 2_000_000 }), set(['x'], { score: 'f1' }), jsonEqual(1)]
    for (const rule of [...rules, jsonSchema({}), answerMatch(['x']), answerF1(['x']), answerContains(['x'])])
      expect(await rule(long)).toEqual(told(1_000_001, 1_000_000))
    expect(await regex(/x$/)('x'.repeat(100_001))).toEqual(told(100_001, 100_000))
    expect(await numeric(3)('3'.repeat(5_001))).toEqual(told(5_001, 5_000))
    expect(await math('3')('3'.repeat(1_001))).toEqual(told(1_001, 1_000))
    const refused = [() => exact(['y', long]), () => answerMatch([long]), () => numeric('3'.repeat(5_001))]
    for (const make of [...refused, () => math(`x${'+1'.repeat(600)}`)]) expect(make).toThrow(RangeError)
  })
})

describe('rules of JSON', () => {
  it('jsonEqual: meaning, not spelling', async () => {
    expect(await values(jsonEqual({ a: [1, 2], b: null }), '{ "b":null, "a":[1,2.0] }')).toEqual([1])
    expect(await values(jsonEqual([1, 2]), '[2,1]', '[1]', '[1,2,3]')).toEqual([0, 0, 0])
    expect(await values(jsonEqual(0), '-0', '0.0', '0e9')).toEqual([1, 1, 1])
    expect(await values(jsonEqual({}), '{', '{} {}', "{'a':1}", '[]')).toEqual([0, 0, 0, 0])
    expect(await values(jsonEqual(JSON.parse('{"__proto__":1}')), '{"__proto__":1}', '{}')).toEqual([1, 0])
  })

  it('jsonEqual: numbers by their digits', async () => {
    const gold = { a: 9007199254740993n, b: [12345678901234567890n] }
    const text = (a: string, b: string) => `{"a":${a},"b":[${b}]}`
    const answers = [
      text('9007199254740993', '12345678901234567890'),
      text('9007199254740993.0', '1234567890123456789e1'),
      text('9007199254740992', '12345678901234567890'),
      text('9007199254740993', '12345678901234567891'),
    ]
    expect(await values(jsonEqual(gold), ...answers)).toEqual([1, 1, 0, 0])
    expect(await values(jsonEqual(answers[0], { text: true }), ...answers)).toEqual([1, 1, 0, 0])
    expect(await values(jsonEqual(1e21), '1000000000000000000000', '1000000000000000000001')).toEqual([1, 0])
    expect(await values(jsonEqual(0.1), '0.1', '0.10', '0.1000000000000000055')).toEqual([1, 1, 0])
  })

  it('a gold whose digits JavaScript has lost is refused by its place', () => {
    // oxlint-disable-next-line no-loss-of-precision -- what an author may write
    expect(() => jsonEqual({ a: [1, 9007199254740993] })).toThrow(/gold\.a\[1\] .* bigint/)
    expect(() => jsonEqual(Number.NaN)).toThrow(RangeError)
    expect(() => jsonEqual(() => 1)).toThrow(RangeError)
    expect(() => jsonEqual('{', { text: true })).toThrow(/not JSON/)
    expect(() => numeric(2 ** 60)).toThrow(/as text/)
    expect(() => jsonSchema({ maximum: 2 ** 60 })).toThrow(/schema\.maximum/)
  })

  it('an object with a key twice has no one meaning, and matches nothing', async () => {
    expect(await jsonEqual({ a: 2 })('{"a":1,"a":2}')).toEqual({ value: 0, why: 'the key a is there twice' })
    expect(await jsonSchema({})('[{"a":1,"\\u0061":2}]')).toMatchObject({ value: 0, why: /twice/ })
  })

  it.each([
    [{ type: 'object', required: ['a'] }, ['{"a":1}'], ['{}', '[]']],
    [{ required: ['a'] }, ['{"a":null}', '1'], ['{}']],
    [{ required: ['toString'] }, ['{"toString":1}'], ['{}']],
    [{ minimum: 5 }, ['5', '"x"'], ['3', '4.9999999999999999999']],
    [{ maxLength: 2 }, ['"ab"', '"😀😀"', '3'], ['"abc"']],
    [{ properties: { a: { type: 'integer' } } }, ['{"a":1}', '{"a":1.0}', '{}', '1'], ['{"a":"x"}', '{"a":1.5}']],
    [{ properties: { constructor: { type: 'integer' } } }, ['{}'], ['{"constructor":"x"}']],
    [{ const: { a: 1 } }, ['{"a":1}', '{"a":1.0}'], ['{"a":2}', '{}', '{"a":1,"b":1}']],
    [{ enum: [[1, { b: 0 }], 'x'] }, ['"x"', '[1,{"b":-0}]'], ['"y"', '[1]', 'null']],
    [{ type: 'integer' }, ['9007199254740993', '12345678901234567890123'], ['9007199254740993.5', '1e-400']],
    [{ maximum: 9007199254740991 }, ['9007199254740991', '9007199254740991.0'], ['9007199254740991.5', '1e300']],
    [{ exclusiveMaximum: 1, exclusiveMinimum: 0 }, ['0.5'], ['1', '0', '0e5']],
    [{ multipleOf: 0.1 }, ['0.3', '1e3', '-0.7'], ['0.35']],
    [{ items: { multipleOf: 7 } }, ['[7,14]', '[9007199254740995]'], ['[9007199254740993]']],
    [
      { uniqueItems: true },
      ['[1,"1"]', '[9007199254740992,9007199254740993]'],
      ['[1,1.0]', '[{"a":1,"b":2},{"b":2,"a":1}]'],
    ],
    [{ prefixItems: [{ const: 1 }], items: false }, ['[1]', '[]'], ['[2]', '[1,2]']],
    [{ propertyNames: { enum: ['a'] } }, ['{"a":1}'], ['{"b":1}']],
    [{ properties: { a: true }, unevaluatedProperties: false }, ['{"a":1}'], ['{"b":1}']],
    [{ contains: { const: 3 }, minContains: 2 }, ['[3,3]'], ['[3]']],
    [{ dependentRequired: { a: ['b'] } }, ['{"a":1,"b":1}', '{}'], ['{"a":1}']],
    [
      JSON.parse('{"if":{"type":"string"},"then":{"pattern":"^a+$"},"else":{"type":"null"}}'),
      ['"aa"', 'null'],
      ['"b"', '1'],
    ],
    [{ $defs: { n: { type: 'array', items: { $ref: '#/$defs/n' } } }, $ref: '#/$defs/n' }, ['[[],[[]]]'], ['[[1]]']],
    [{ oneOf: [{ type: 'integer' }, { minimum: 2 }] }, ['1', '2.5'], ['3', '1.5']],
    [{ not: { const: null } }, ['1'], ['null']],
    [{ format: 'date' }, ['"2026-02-28"'], ['"2026-02-30"']],
    [{ format: 'email' }, ['"a@b.org"'], ['"a"']],
  ])('jsonSchema: all of draft 2020-12 (%j)', async (schema, right, wrong) => {
    const rule = jsonSchema(schema)
    expect(await values(rule, ...right)).toEqual(right.map(() => 1))
    expect(await values(rule, ...wrong)).toEqual(wrong.map(() => 0))
  })

  it.each([
    [{ requred: ['a'] }, /"requred"/],
    [{ type: 'object', properties: { a: { maxLenght: 3 } } }, /"maxLenght"/],
    [{ type: 'string', nullable: true }, /"nullable"/],
    [{ additionalItems: false }, /"additionalItems"/],
    [{ minContains: 2 }, /"minContains"/],
    [JSON.parse('{"then":false}'), /"then"/],
    [{ format: 'dates' }, /"dates"/],
    [{ type: 'sting' }, /type/],
    [{ items: [{}] }, /items/],
    [{ pattern: '(' }, /\(/],
    [{ $ref: 'https://example.org/other.json' }, /example\.org/],
    [{ $schema: 'http://json-schema.org/draft-07/schema#' }, /draft-07/],
  ])('jsonSchema: what would have no effect is refused by its name (%j)', (schema, name) => {
    expect(() => jsonSchema(schema)).toThrow(RangeError)
    expect(() => jsonSchema(schema)).toThrow(name)
  })

  it('jsonSchema: the reason names the place', async () => {
    const rule = jsonSchema({ properties: { a: { items: { maximum: 3 } } }, additionalProperties: false })
    expect(await rule('{"a":[1,4]}')).toMatchObject({ value: 0, why: expect.stringContaining('/a/1') })
    expect(await rule('{"b":1}')).toMatchObject({ value: 0, why: expect.stringContaining('(b)') })
  })
})

describe('reward files', () => {
  it('json wins over text; other keys are components', () => {
    const read = readRewardFiles({ json: '{"reward": 0.5, "tests": 1, "lint": false}', text: '0.54' })
    expect(read).toEqual({ ok: true, reward: 0.5, components: { tests: 1, lint: 0 } })
    expect(readRewardFiles({ json: null, text: ' 0.25\n' })).toMatchObject({ ok: true, reward: 0.25 })
    expect(readRewardFiles({ json: '{"accuracy": 1}', text: null })).toEqual({ ok: true, reward: 1, components: {} })
  })

  it.each([
    ['nothing', null, null],
    ['broken json, though the text is whole', '{"reward": 1', '1'],
    ['two that mean something else', '{"reward": 1}', '0'],
    ['an array', '[1]', null],
    ['a string', '{"reward": "1"}', null],
    ['null', '{"reward": null}', null],
    ['an empty object', '{}', null],
    ['several keys without reward', '{"a": 1, "b": 1}', null],
    ['words', null, 'passed'],
    ['two numbers', null, '1 0'],
    ['empty text', null, ''],
    ['infinity', null, '1e999'],
  ])('%s is no reward', (_, json, text) => {
    expect(readRewardFiles({ json, text }).ok).toBe(false)
  })
})

describe('whether a box is starved', () => {
  const ended = { kind: 'exited', code: 0 } as const
  it.each([
    ['a processor of its own', 1, { ...ended, stdout: '50 49\n' }, false],
    ['half of one', 1, { ...ended, stdout: '50 25\n' }, true],
    ['half of one, of which it is meant to have half', 0.5, { ...ended, stdout: '50 25\n' }, false],
    ['a quarter of two', 2, { ...ended, stdout: '52 13\n' }, true],
    ['no time to say it', 1, { kind: 'timed_out', stdout: '' }, true],
    ['a shell that cannot tell', 1, { ...ended, code: 2, stdout: '' }, false],
  ] as const)('%s', async (_, cpus, result, wanted) => {
    const exec = async () => ({ ...result, stdout: new TextEncoder().encode(result.stdout) })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else of the box is asked
    const box = { exec } as unknown as Box
    expect(await isStarved(box, { cpus, signal: new AbortController().signal })).toBe(wanted)
  })
})

describe('digest of the verifier', () => {
  it('changes with content, name and mode, and with nothing else', async () => {
    const folder = tempDir()
    const make = async (name: string, files: Record<string, string>, mode = 0o644) => {
      for (const [path, text] of Object.entries(files)) {
        await mkdir(join(folder, name, path, '..'), { recursive: true })
        await writeFile(join(folder, name, path), text, { mode })
      }
      return directoryDigest(join(folder, name))
    }
    const same = await make('a', { 'test.sh': 'x', 'deep/check.py': 'y' })
    expect(await make('b', { 'deep/check.py': 'y', 'test.sh': 'x' })).toBe(same)
    const others = [
      await make('c', { 'test.sh': 'x', 'deep/check.py': 'z' }),
      await make('d', { 'test.sh': 'x', 'deep/check2.py': 'y' }),
      await make('e', { 'test.sh': 'x', 'deep/check.py': 'y' }, 0o755),
      await make('f', { 'test.sh': 'xy', 'deep/check.py': '' }),
      await directoryDigest(join(folder, 'absent')),
    ]
    expect(new Set([same, ...others]).size).toBe(6)
  })
})
