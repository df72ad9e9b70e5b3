/**
 * The independent comparer: holds exported rows against the engine's journal. It shares no code with what it judges.
 *
 *     node test/fidelity/compare.ts JOURNAL EXPORT_DIRECTORY [--calls-only] [--json]
 *
 * Exits 0 when everything agrees, 1 on the first deviation (named exactly), 2 when it cannot read its input.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { assignClaims, type Claim } from './compare-assign.ts'
import { accountingDeviations, extensionDeviations, type Leaves, leavesOf } from './compare-checks.ts'
import { claimsOf, type Deviation } from './compare-claims.ts'
import { PromptIndex } from './compare-places.ts'
import {
  type ExportedRow,
  type ManifestCounts,
  readJournal,
  readManifest,
  readRows,
  type TrueChoice,
} from './compare-read.ts'

/** The result of a comparison. */
export interface Report {
  readonly deviations: readonly Deviation[]
  readonly rows: number
  readonly trainedTokens: number
  readonly generations: number
  readonly sampledTokens: number
  /** Tokens of answers whose connection broke: they may or may not have been recorded. */
  readonly undeliveredTokens: number
  /** Rows that the journal's own structure asks for: answers that no later prompt extends. */
  readonly leaves: Leaves
}

/** Compares rows in memory. Pure. */
export function compare(
  journal: readonly TrueChoice[],
  rows: readonly ExportedRow[],
  manifest: ManifestCounts,
): Report {
  const deviations: Deviation[] = []
  const index = new PromptIndex(journal)
  const isLinked = linked(journal, rows)
  const claims: Claim[] = []
  let trainedTokens = 0
  for (const row of rows) {
    trainedTokens += row.mask.reduce((a, b) => a + b, 0)
    const found = claimsOf(row, index.placesIn(row), { journal, isLinked })
    deviations.push(...found.deviations)
    claims.push(...found.claims)
  }
  for (const claim of assignClaims(claims)) {
    deviations.push({
      kind: 'twice',
      message: `row ${claim.rowId}: tokens at ${claim.positions[0]}..${claim.positions.at(-1)} are trained in another row too`,
    })
  }
  const leaves = leavesOf(journal)
  deviations.push(
    ...extensionDeviations(rows, journal, manifest.ambiguous),
    ...accountingDeviations(journal, rows, manifest),
  )
  const isWhole = manifest.notExported === 0 && journal.every((choice) => choice.delivered && choice.tokens.length > 0)
  if (isWhole && (rows.length < leaves.least || rows.length > leaves.most + manifest.ambiguous)) {
    deviations.push({
      kind: 'extension',
      message: `${rows.length} rows, while the journal has ${range(leaves)} answers that no later prompt extends`,
    })
  }
  const lengths = (choices: readonly TrueChoice[]): number => choices.reduce((n, choice) => n + choice.tokens.length, 0)
  return {
    deviations,
    rows: rows.length,
    trainedTokens,
    generations: journal.length,
    sampledTokens: lengths(journal),
    undeliveredTokens: lengths(journal.filter((choice) => !choice.delivered)),
    leaves,
  }
}

/** Which answers of the journal the export is held against. */
export interface Scope {
  /** Leaves out answers to requests without `x-request-id`: a preflight of the engine is no call of any session. */
  readonly callsOnly?: boolean
}

/** Reads and compares. Throws where a file cannot be read. */
export async function compareFiles(journalFile: string, directory: string, scope: Scope = {}): Promise<Report> {
  const journal = await readJournal(journalFile)
  const held = scope.callsOnly === true ? journal.filter((choice) => choice.callId !== null) : journal
  return compare(held, await readRows(directory), await readManifest(directory))
}

function linked(journal: readonly TrueChoice[], rows: readonly ExportedRow[]): boolean {
  const known = new Set(journal.map((choice) => choice.callId))
  return rows.some((row) => row.declared.some(({ callId }) => callId !== null && known.has(callId)))
}

function range({ least, most }: Leaves): string {
  return least === most ? String(least) : `${least} to ${most}`
}

function render(report: Report): string {
  const facts = [
    `${report.rows} rows, ${report.trainedTokens} trained tokens`,
    `${report.generations} answers in the journal, ${report.sampledTokens} sampled tokens (${report.undeliveredTokens} undelivered), ${range(report.leaves)} never extended`,
  ]
  const [first] = report.deviations
  if (first === undefined) return [...facts, 'agrees: ids, logprobs, context, ownership, buckets, extension'].join('\n')
  const rest = report.deviations.length - 1
  return [...facts, `DEVIATES (${first.kind}): ${first.message}`, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean' }, 'calls-only': { type: 'boolean', default: false } },
  })
  const [journal, directory] = positionals
  if (journal === undefined || directory === undefined) {
    console.error('usage: node test/fidelity/compare.ts JOURNAL EXPORT_DIRECTORY [--calls-only] [--json]')
    process.exit(2)
  }
  try {
    const report = await compareFiles(journal, directory, { callsOnly: values['calls-only'] })
    console.log(values.json === true ? JSON.stringify(report) : render(report))
    process.exitCode = report.deviations.length === 0 ? 0 : 1
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 2
  }
}
