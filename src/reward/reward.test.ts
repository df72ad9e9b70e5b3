import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import type { Box } from '../sandbox/index.ts'
import {
  compose,
  directoryDigest,
  exact,
  hacked,
  isStarved,
  jsonEqual,
  jsonSchema,
  numeric,
  parseNumber,
  readRewardFiles,
  regex,
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

describe('rules', () => {
  it('exact: one of the golds after normalisation', () => {
    const rule = exact(['Paris', 'Lutetia'], { trim: true, lowerCase: true, spaces: true })
    expect(rule('  PARIS\n').value).toBe(1)
    expect(rule('Paris, I think').value).toBe(0)
    expect(exact('é')('e\u0301').value).toBe(1)
  })

  it('json: what is nested beyond all measure is a wrong answer, like any other', () => {
    const open = (start: string, inner: string, end: string) => `${start.repeat(100_000)}${inner}${end.repeat(100_000)}`
    for (const text of [open('[', '', ']'), open('{"a":', '1', '}'), open('[1,{"b":', '[]', '}]')]) {
      expect(jsonEqual([1])(text).value).toBe(0)
      expect(jsonSchema({ anyOf: [{ type: 'array', items: { $ref: '#' } }, { type: 'object' }] })(text).value).toBe(0)
    }
    const deep = JSON.parse(open('[', '', ']').slice(99_600, 100_400))
    expect(jsonEqual(deep)(JSON.stringify(deep)).value).toBe(1)
    expect(jsonSchema({ type: 'array', items: { $ref: '#' } })(JSON.stringify(deep)).value).toBe(1)
  })

  it('numeric: tolerance, separators, percent, and integers that doubles cannot tell apart', () => {
    expect(numeric(1234.5, { absolute: 0.01 })('1,234.505').value).toBe(1)
    expect(numeric(100, { relative: 0.05 })('94.9').value).toBe(0)
    expect(numeric(0.5)('50%').value).toBe(1)
    expect(numeric('9007199254740993')('9007199254740992').value).toBe(0)
    for (const text of ['', '1,2', '0x10', '1 2', 'NaN', 'Infinity', '1e999', 'about 3'])
      expect(parseNumber(text)).toBeNull()
  })

  it('numeric: by digits, however they are written, and bounds as they are meant', () => {
    const apart = [
      ['9007199254740993', '9007199254740992.0'],
      ['10000000000000001', '1e16'],
      ['0', '1e-400'],
      ['1e-400', '0'],
      ['123456789012345678.5', '123456789012345678'],
    ] as const
    expect(apart.filter(([gold, given]) => numeric(gold)(given).value === 1)).toEqual([])
    expect(numeric('1e16')('10,000,000,000,000,000.0').value).toBe(1)
    expect(numeric('-5')('\u22125').value).toBe(1)
    expect(numeric(0.1)('0.10000000000000001').value).toBe(1)
    expect(numeric(1, { absolute: 0.1 })('1.1').value).toBe(1)
    expect(numeric(0.3, { absolute: 0.1 })('0.4').value).toBe(1)
    expect(numeric(3, { relative: 0.1 })('2.7').value).toBe(1)
    expect(numeric(3, { relative: 0.1 })('2.69999999999999999999').value).toBe(0)
    for (const absolute of [Number.NaN, Infinity, -1]) expect(() => numeric(1, { absolute })).toThrow(RangeError)
  })

  it('numeric: no text takes long', () => {
    const rule = numeric(3, { relative: 0.1 })
    for (const text of [
      '1e-999999999',
      `0.${'3'.repeat(1_000_000)}`,
      '9'.repeat(1_000_000),
      `3e-${'0'.repeat(900)}1`,
    ]) {
      expect(rule(text).value).toBe(0)
    }
  })

  it('regex: whole or part, and no state between calls', () => {
    const rule = regex(/^a+$/gm)
    expect([rule('aaa').value, rule('aaa').value]).toEqual([1, 1])
    expect(regex(/b|ab/, { whole: true })(' ab ').value).toBe(1)
    expect(regex(/b|ab/, { whole: true })('abc').value).toBe(0)
  })

  it('set: repeating gains nothing, listing everything costs', () => {
    const f1 = set(['a', 'b'], { score: 'f1' })
    expect(f1('a\na\na').value).toBeCloseTo(2 / 3)
    expect(f1('a\nb\nc\nd').value).toBeCloseTo(2 / 3)
    expect(f1('').value).toBe(0)
    expect(set([], { score: 'f1' })('\n').value).toBe(1)
    expect(set(['a', 'b'], { score: 'all_or_nothing' })('b\na\n').value).toBe(1)
    expect(set(['a', 'b'], { score: 'all_or_nothing' })('a').value).toBe(0)
  })

  it('set: F1 is symmetric and between 0 and 1', () => {
    const items = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'))
    fc.assert(
      fc.property(items, items, (left, right) => {
        const value = set(left, { score: 'f1' })(right.join('\n')).value
        expect(value).toBeCloseTo(set(right, { score: 'f1' })(left.join('\n')).value)
        expect(value).toBeGreaterThanOrEqual(0)
        expect(value).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('json: meaning, not spelling; schema', () => {
    expect(jsonEqual({ a: [1, 2], b: null })('{ "b":null, "a":[1,2.0] }').value).toBe(1)
    expect(jsonEqual([1, 2])('[2,1]').value).toBe(0)
    expect(jsonEqual(0)('-0').value).toBe(1)
    expect(jsonEqual({})('{').value).toBe(0)
    const rule = jsonSchema({ type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] })
    expect([rule('{"n": 1}').value, rule('{"n": 1.5}').value, rule('n').value]).toEqual([1, 0, 0])
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
