import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compare } from './compare.ts'
import type { ExportedRow, ManifestCounts, TrueChoice } from './compare-read.ts'

const choice = (number: number, prompt: readonly number[], tokens: readonly number[], index = 0): TrueChoice => ({
  number,
  requestId: `request-${number - index}`,
  callId: `call-${number - index}`,
  index,
  prompt,
  tokens,
  logprobs: tokens.map((id) => -id / 7),
  delivered: true,
})

/** The row of a path of choices, each of which takes up the one before. */
function rowOf(rowId: string, path: readonly TrueChoice[], trained: readonly TrueChoice[] = path): ExportedRow {
  const leaf = path.at(-1)
  const tokens = [...(leaf?.prompt ?? []), ...(leaf?.tokens ?? [])]
  const mask = tokens.map(() => 0)
  const logprobs = tokens.map(() => 0)
  for (const { prompt, tokens: sampled, logprobs: truth } of trained) {
    for (const [i] of sampled.entries()) {
      mask[prompt.length + i] = 1
      logprobs[prompt.length + i] = Math.fround(truth[i] ?? 0)
    }
  }
  const declared = path.map(({ callId, index, prompt, tokens: sampled }) => ({
    callId,
    choice: index,
    start: prompt.length,
    end: prompt.length + sampled.length,
  }))
  return { rowId, rolloutId: 'rollout', tokens, mask, logprobs, declared }
}

function countsOf(rows: readonly ExportedRow[], change: Partial<ManifestCounts> = {}): ManifestCounts {
  const trainable = rows.reduce((n, row) => n + row.mask.reduce((a, b) => a + b, 0), 0)
  return { sampled: trainable, trainable, masked: 0, notExported: 0, rows: rows.length, ambiguous: 0, ...change }
}

const kinds = (journal: readonly TrueChoice[], rows: readonly ExportedRow[], change: Partial<ManifestCounts> = {}) =>
  compare(journal, rows, countsOf(rows, change)).deviations.map(({ kind }) => kind)

const first = choice(0, [1, 2, 3], [10, 11])
const second = choice(1, [1, 2, 3, 10, 11, 4], [12, 13])
const journal = [first, second]
const row = rowOf('a', journal)

describe('the comparer', () => {
  it('agrees with a row that is the journal', () => {
    const report = compare(journal, [row], countsOf([row]))
    expect(report).toMatchObject({ deviations: [], trainedTokens: 4, sampledTokens: 4, leaves: { least: 1, most: 1 } })
  })

  it('names row, position and both ids of a wrong token', () => {
    const tokens = row.tokens.with(4, 99)
    const [deviation] = compare(journal, [{ ...row, tokens }], countsOf([row])).deviations
    expect(deviation?.message).toContain(
      'row a: token 4 is 99, the engine has 11 (request request-0, choice 0, sampled token 1)',
    )
  })

  it('names the position of a wrong logprob', () => {
    const logprobs = row.logprobs.with(7, -0.5)
    const [deviation] = compare(journal, [{ ...row, logprobs }], countsOf([row])).deviations
    expect(deviation).toMatchObject({ kind: 'logprob', message: expect.stringContaining('token 7') })
  })

  it.each([
    ['a prompt id', { tokens: row.tokens.with(1, 99) }, ['context']],
    ['an id between answers', { tokens: row.tokens.with(5, 99) }, ['context']],
    ['a trained prompt token', { mask: row.mask.with(2, 1) }, ['token', 'accounting', 'accounting']],
    ['a short mask', { mask: row.mask.slice(1) }, ['shape']],
    [
      'another call',
      { declared: row.declared.toReversed().map((range, i) => ({ ...range, callId: `call-${i}` })) },
      ['call'],
    ],
  ])('sees %s', (_, change, expected) => {
    const found = kinds(journal, [{ ...row, ...change }], { sampled: 4, trainable: 4 })
    expect(found).toEqual(expect.arrayContaining(expected.slice(0, 1)))
  })

  it('sees tokens that are in no bucket, and in two', () => {
    const half = rowOf('a', journal, [second])
    expect(kinds(journal, [half])).toEqual(['accounting'])
    expect(kinds(journal, [half], { sampled: 4, masked: 2 })).toEqual([])
    expect(kinds(journal, [row], { masked: 2, sampled: 6 })).toEqual(['accounting'])
  })

  it('sees a row per call where turns were append-only', () => {
    const rows = [rowOf('short', [first]), rowOf('long', journal, [second])]
    expect(kinds(journal, rows)).toEqual(['extension', 'extension'])
  })

  it('accepts a row per answer where the prompt was rewritten', () => {
    const rewritten = choice(1, [1, 2, 3, 11, 4], [12])
    expect(kinds([first, rewritten], [rowOf('one', [first]), rowOf('two', [rewritten])])).toEqual([])
  })

  it('sees one answer trained in two rows', () => {
    const other = choice(2, [1, 2, 3, 10, 11, 5], [14])
    const all = [...journal, other]
    const shared = [rowOf('one', journal), rowOf('two', [first, other])]
    expect(kinds(all, shared, { trainable: 5, sampled: 5 })).toContain('twice')
    const owned = [rowOf('one', journal), rowOf('two', [first, other], [other])]
    expect(kinds(all, owned)).toEqual([])
  })

  it('gives equal answers of siblings one row each, and no more', () => {
    const twins = [choice(0, [1], [5, 6]), choice(1, [1], [5, 6], 1)]
    const anonymous = (rowId: string): ExportedRow => ({ ...rowOf(rowId, twins.slice(0, 1)), declared: [] })
    expect(kinds(twins, [anonymous('a'), anonymous('b')])).toEqual([])
    expect(kinds(twins, [anonymous('a'), anonymous('b'), anonymous('c')])).toContain('twice')
  })

  it('accepts a row that goes on from a copy of twins only where the fork was declared', () => {
    const twins = [choice(0, [1], [5, 6]), choice(1, [1], [5, 6], 1)]
    const next = choice(2, [1, 5, 6, 2], [7])
    const rows = [...twins.map((twin) => rowOf(`twin-${twin.index}`, [twin])), rowOf('next', [next])]
    expect(kinds([...twins, next], rows)).toEqual(['extension', 'extension'])
    expect(kinds([...twins, next], rows, { ambiguous: 1 })).toEqual([])
  })

  it('holds a row to the sibling that it names', () => {
    const twins = [choice(0, [1], [5, 6]), choice(1, [1], [5, 6], 1)]
    const rows = [rowOf('a', twins.slice(0, 1)), rowOf('b', twins.slice(0, 1))]
    expect(kinds(twins, rows)).toContain('twice')
  })

  it('leaves open whether an undelivered answer was recorded', () => {
    const broken = { ...choice(2, [9], [20, 21]), delivered: false }
    expect(kinds([...journal, broken], [row])).toEqual([])
    expect(kinds([...journal, broken], [row], { sampled: 6, masked: 2 })).toEqual([])
    expect(kinds([...journal, broken], [row], { sampled: 7, masked: 3 })).toEqual(['accounting'])
  })

  it('agrees with every tree and with no tree of which one trained number was changed', () => {
    fc.assert(
      fc.property(trees, fc.nat(), fc.boolean(), ({ choices, rows }, pick, isToken) => {
        expect(kinds(choices, rows)).toEqual([])
        const trained = rows.flatMap((each, at) => each.mask.flatMap((value, i) => (value === 1 ? [{ at, i }] : [])))
        const { at, i } = trained[pick % trained.length] ?? { at: 0, i: 0 }
        const changed = rows.map((each, index) => {
          if (index !== at) return each
          if (isToken) return { ...each, tokens: each.tokens.with(i, 1_000) }
          return { ...each, logprobs: each.logprobs.with(i, (each.logprobs[i] ?? 0) - 0.001) }
        })
        expect(kinds(choices, changed)).not.toEqual([])
      }),
      { numRuns: 1000 },
    )
  })
})

/** Conversations with siblings; few different ids, so that equal answers and prompts are common. */
const trees = fc
  .array(
    fc.record({
      prompt: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
      answers: fc.array(fc.array(fc.integer({ min: 4, max: 5 }), { minLength: 1, maxLength: 3 }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((turns) => {
    const choices: TrueChoice[] = []
    const rows: ExportedRow[] = []
    let trunk: readonly TrueChoice[] = []
    let context: readonly number[] = []
    for (const { prompt, answers } of turns) {
      context = [...context, ...prompt]
      const siblings = answers.map((tokens, index) => choice(choices.length + index, context, tokens, index))
      choices.push(...siblings)
      for (const sibling of siblings.slice(1))
        rows.push(rowOf(`leaf-${sibling.number}`, [...trunk, sibling], [sibling]))
      const [taken] = siblings
      if (taken === undefined) continue
      trunk = [...trunk, taken]
      context = [...context, ...taken.tokens]
    }
    return { choices, rows: [...rows, rowOf('trunk', trunk)] }
  })
