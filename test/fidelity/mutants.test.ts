/** Faults that an exporter or a store could have; each must turn the comparer red, and nothing else may. */
import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openReader, runExport } from '../../src/trajectory/index.ts'
import type { Deviation } from './compare-claims.ts'
import { compareFiles } from './compare.ts'
import { type Arrays, type Edit, mutateRows } from './mutate.ts'
import { record, type Recorded } from './world.ts'

const run = promisify(execFile)
const formats = ['jsonl', 'verl'] as const

let recorded: Recorded
const exported = (format: string): string => join(recorded.directory, format)
beforeAll(async () => {
  recorded = await record(
    { model: 'scripted-qwen3', echoesThinking: true, streams: false, siblings: 2, hangsUp: false },
    // Answers in tokens that no tokenizer would choose for their text: what a re-encode cannot give back.
    (engine) => engine.post('/control/faults', { kind: 'non_canonical', count: 3 }),
  )
  await using reader = await openReader(recorded.storeDirectory)
  for (const format of formats) {
    await runExport({ reader, exporter: format, out: exported(format), paddockVersion: '0.0.0' })
  }
})
afterAll(() => recorded[Symbol.asyncDispose]())

/** Changes the longest row only. */
const longest =
  (change: (row: Arrays) => Arrays): Edit =>
  (rows) => {
    const length = Math.max(...rows.map((row) => row.tokens.length))
    const at = rows.findIndex((row) => row.tokens.length === length)
    return rows.map((row, index) => (index === at ? change(row) : row))
  }

/** First trained token from which the run goes on for `length` tokens. */
function trainedRun(row: Arrays, length: number): number {
  const at = row.mask.findIndex((_, i) => row.mask.slice(i, i + length).every((value) => value === 1))
  if (at < 0 || at + length > row.mask.length) throw new Error(`no ${length} trained tokens in a row`)
  return at
}

const without = (values: readonly number[], at: number): readonly number[] => values.toSpliced(at, 1)

const mutants: readonly (readonly [string, Deviation['kind'], Edit])[] = [
  [
    'a dropped token',
    'token',
    longest((row) => {
      const at = trainedRun(row, 4) + 2
      return { tokens: without(row.tokens, at), mask: without(row.mask, at), logprobs: without(row.logprobs, at) }
    }),
  ],
  [
    'logprobs shifted by one token',
    'logprob',
    (rows) => rows.map((row) => ({ ...row, logprobs: [0, ...row.logprobs.slice(0, -1)] })),
  ],
  [
    'a logprob of the wrong precision',
    'logprob',
    (rows) => rows.map((row) => ({ ...row, logprobs: row.logprobs.map((value) => Math.round(value * 1e4) / 1e4) })),
  ],
  ['a prompt id changed', 'context', longest((row) => ({ ...row, tokens: row.tokens.with(5, row.tokens[6] ?? 0) }))],
  [
    'an id of a tool result changed',
    'context',
    longest((row) => {
      const at = row.mask.lastIndexOf(0)
      return { ...row, tokens: row.tokens.with(at, (row.tokens[at] ?? 0) + 1) }
    }),
  ],
  [
    'the first prompt token left out',
    'context',
    longest((row) => ({ tokens: row.tokens.slice(1), mask: row.mask.slice(1), logprobs: row.logprobs.slice(1) })),
  ],
  ['rows swapped', 'call', (rows) => rows.toReversed()],
  [
    'a scaffold token trained',
    'token',
    longest((row) => ({ ...row, mask: row.mask.with(row.mask.lastIndexOf(0), 1) })),
  ],
  [
    'a token trained in no row',
    'accounting',
    longest((row) => ({ ...row, mask: row.mask.with(row.mask.indexOf(1), 0) })),
  ],
  ['a row left out', 'accounting', (rows) => rows.map((row, index) => (index === 0 ? undefined : row))],
]

describe.each(formats)('%s', (format) => {
  it('is green as it was exported', async () => {
    const report = await compareFiles(recorded.engine.journal, exported(format))
    expect(report.deviations).toEqual([])
    const { stdout } = await run(process.execPath, [
      'test/fidelity/compare.ts',
      recorded.engine.journal,
      exported(format),
    ])
    expect(stdout).toContain('agrees')
  })

  it('is green after a rewrite that changes nothing', async () => {
    const copy = exported(`${format}-same`)
    await cp(exported(format), copy, { recursive: true })
    await mutateRows(copy, format, (rows) => rows)
    expect((await compareFiles(recorded.engine.journal, copy)).deviations).toEqual([])
  })

  it.each(mutants)('turns red with %s', async (name, kind, edit) => {
    const copy = exported(`${format}-${name.replaceAll(' ', '-')}`)
    await cp(exported(format), copy, { recursive: true })
    await mutateRows(copy, format, edit)
    const { deviations } = await compareFiles(recorded.engine.journal, copy)
    expect(deviations.map((deviation) => deviation.kind)).toContain(kind)
  })

  it('turns red with an answer that was decoded and encoded again, and exits 1', async () => {
    const copy = exported(`${format}-re-encode`)
    await cp(exported(format), copy, { recursive: true })
    const before: Arrays[] = []
    await mutateRows(copy, format, (rows) => (before.push(...rows), rows))
    const changed = await Promise.all(before.map((row) => reEncoded(row)))
    expect(changed.map((row) => row.tokens)).not.toEqual(before.map((row) => row.tokens))
    await mutateRows(copy, format, () => changed)
    const { deviations } = await compareFiles(recorded.engine.journal, copy)
    expect(deviations[0]?.kind).toBe('token')
    await expect(
      run(process.execPath, ['test/fidelity/compare.ts', recorded.engine.journal, copy]),
    ).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('DEVIATES (token): row ') })
  })
})

/** The first trained answer of a row, through text and back by the engine's own tokenizer. */
async function reEncoded(row: Arrays): Promise<Arrays> {
  const start = row.mask.indexOf(1)
  const length = row.mask.slice(start).indexOf(0)
  const end = length < 0 ? row.mask.length : start + length
  const { engine } = recorded
  const text = (await engine.post('/detokenize', { tokens: row.tokens.slice(start, end) }))['prompt']
  const again = (await engine.post('/tokenize', { prompt: text, add_special_tokens: false }))['tokens'] as number[]
  const replace = (values: readonly number[], by: readonly number[]): readonly number[] =>
    values.toSpliced(start, end - start, ...by)
  return {
    tokens: replace(row.tokens, again),
    mask: replace(
      row.mask,
      again.map(() => 1),
    ),
    // Logprobs of other tokens do not exist; the faulty exporter keeps what it has.
    logprobs: replace(
      row.logprobs,
      again.map((_, i) => row.logprobs[start + i] ?? 0),
    ),
  }
}
