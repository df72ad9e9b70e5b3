/** Checks over a whole export: extension, buckets, number of rows. */
import type { Deviation } from './compare-claims.ts'
import { commonPrefix } from './compare-places.ts'
import type { ExportedRow, ManifestCounts, TrueChoice } from './compare-read.ts'

/** A row that is the start of another should have been extended, unless the engine sampled the same answer twice. */
export function extensionDeviations(
  rows: readonly ExportedRow[],
  journal: readonly TrueChoice[],
  ambiguous: number,
): readonly Deviation[] {
  let forgivable = ambiguous
  const deviations: Deviation[] = []
  const byLength = rows.toSorted((a, b) => a.tokens.length - b.tokens.length)
  for (const [shorter, row] of byLength.entries()) {
    const longer = byLength
      .slice(shorter + 1)
      .find((other) => commonPrefix(row.tokens, other.tokens) === row.tokens.length)
    if (longer === undefined) continue
    const isStart = (choice: TrueChoice, tokens: readonly number[]): boolean =>
      commonPrefix([...choice.prompt, ...choice.tokens], tokens) === choice.prompt.length + choice.tokens.length
    const ends = journal.filter(
      (choice) => choice.prompt.length + choice.tokens.length === row.tokens.length && isStart(choice, row.tokens),
    )
    // Answers to the same prompt with which the longer row may have gone on instead: equal ones, starts, continuations.
    const samplings = journal.filter(
      (choice) => ends.some((end) => end.prompt.length === choice.prompt.length) && isStart(choice, longer.tokens),
    )
    const equal = rows.filter(
      (other) =>
        other.tokens.length === row.tokens.length && commonPrefix(other.tokens, row.tokens) === row.tokens.length,
    )
    // Each row that ends here needs an answer of its own, and the one that goes on needs one more.
    const needed = equal.length + (longer.tokens.length > row.tokens.length ? 1 : 0)
    if (samplings.length >= needed) continue
    // Of equal answers nobody may know which one was taken up; the recorder says how often that happened.
    if (ends.length > 1 && forgivable > 0) {
      forgivable -= 1
      continue
    }
    deviations.push({
      kind: 'extension',
      message: `row ${row.rowId} (${row.tokens.length} tokens) is the start of row ${longer.rowId} (${longer.tokens.length} tokens) and should have been extended by it`,
    })
  }
  return deviations
}

/** Rows, manifest and journal must count the same tokens: each sampled one in exactly one bucket. */
export function accountingDeviations(
  journal: readonly TrueChoice[],
  rows: readonly ExportedRow[],
  manifest: ManifestCounts,
): readonly Deviation[] {
  const deviations: Deviation[] = []
  const expect = (name: string, found: number, least: number, most = least): void => {
    if (found >= least && found <= most) return
    const wanted = least === most ? String(least) : `${least} to ${most}`
    deviations.push({ kind: 'accounting', message: `${name}: ${found}, expected ${wanted}` })
  }
  const trained = rows.reduce((n, row) => n + row.mask.reduce((a, b) => a + b, 0), 0)
  const total = journal.reduce((n, choice) => n + choice.tokens.length, 0)
  const certain = journal.reduce((n, choice) => n + (choice.delivered ? choice.tokens.length : 0), 0)
  expect('rows in the manifest', manifest.rows, rows.length)
  expect('trainable tokens in the manifest', manifest.trainable, trained)
  expect('tokens in the buckets', manifest.trainable + manifest.masked + manifest.notExported, manifest.sampled)
  expect('sampled tokens in the manifest', manifest.sampled, certain, total)
  return deviations
}

/** How many rows the journal asks for: answers that no later prompt takes up token for token. */
export interface Leaves {
  readonly least: number
  readonly most: number
}

/**
 * Counts {@link Leaves}. Which of several answers to one prompt a later prompt took up is certain only where a single
 * one fits: equal answers, and answers that are the start of others, are told apart by nothing in the journal.
 */
export function leavesOf(journal: readonly TrueChoice[]): Leaves {
  const prompts = Map.groupBy(
    journal.filter((choice) => choice.tokens.length > 0),
    (choice) => choice.prompt.join(),
  )
  let least = 0
  let most = 0
  for (const siblings of prompts.values()) {
    const takers = new Set<string>()
    const certain = new Set<string>()
    for (const later of journal) {
      const answers = [
        ...new Set(siblings.filter((choice) => takesUp(later, choice)).map((choice) => choice.tokens.join())),
      ]
      if (answers.length > 0) takers.add(later.requestId)
      if (answers.length === 1) certain.add(answers.join())
    }
    least += Math.max(0, siblings.length - takers.size)
    most += siblings.length - Math.max(certain.size, Math.min(1, takers.size))
  }
  return { least, most }
}

function takesUp(later: TrueChoice, choice: TrueChoice): boolean {
  const { prompt, tokens } = choice
  return (
    later.prompt.length > prompt.length + tokens.length &&
    commonPrefix(prompt, later.prompt) === prompt.length &&
    commonPrefix(tokens, later.prompt, prompt.length) === tokens.length
  )
}
