/** Holds the trained tokens of one row against the journal. */
import type { Claim } from './compare-assign.ts'
import { commonPrefix, type Place } from './compare-places.ts'
import type { ExportedRow, TrueChoice } from './compare-read.ts'

/** What does not agree. `kind` is stable; `message` names row, position and both values. */
export interface Deviation {
  readonly kind: 'shape' | 'token' | 'context' | 'logprob' | 'call' | 'twice' | 'extension' | 'accounting'
  readonly message: string
}

/** What a row is judged against. */
export interface RowContext {
  readonly journal: readonly TrueChoice[]
  /** Rows name calls that the journal knows, so each trained token must come from the call that it names. */
  readonly isLinked: boolean
}

/**
 * The journal's answers behind each trained token of a row: same ids, same logprobs as float32, same context, and the
 * call that the row names. Stops at the first token that has none.
 */
export function claimsOf(
  row: ExportedRow,
  places: readonly Place[],
  context: RowContext,
): { readonly claims: readonly Claim[]; readonly deviations: readonly Deviation[] } {
  const { length } = row.tokens
  if (row.mask.length !== length || row.logprobs.length !== length) {
    const message = `row ${row.rowId}: ${length} ids, ${row.mask.length} mask values, ${row.logprobs.length} logprobs`
    return { claims: [], deviations: [{ kind: 'shape', message }] }
  }
  const claims: Claim[] = []
  for (let at = 0; at < length; at += 1) {
    if (row.mask[at] !== 1) continue
    const all = places.filter((place) => place.start <= at && at < place.start + place.length)
    if (all.length === 0) return { claims, deviations: [explain(row, at, context.journal)] }
    const named = context.isLinked ? all.filter((place) => isDeclared(row, place, at)) : all
    const covering = named.length > 0 ? named : all
    const end = Math.max(...covering.map((place) => lastTrained(row, place))) + 1
    const widest = covering.filter((place) => lastTrained(row, place) === end - 1)
    const positions: number[] = []
    for (let position = at; position < end; position += 1) if (row.mask[position] === 1) positions.push(position)
    const wrongAt = (place: Place): number | undefined =>
      positions.find((position) => !sameLogprob(row.logprobs[position], place.choice.logprobs[position - place.start]))
    const exact = widest.filter((place) => wrongAt(place) === undefined)
    const [first] = widest
    if (exact.length === 0 && first !== undefined) {
      const position = wrongAt(first) ?? at
      const truth = first.choice.logprobs[position - first.start]
      const message = `row ${row.rowId}: token ${position} has logprob ${row.logprobs[position]}, the engine says ${truth} (${nameOf(first.choice)}, token ${position - first.start})`
      return { claims, deviations: [{ kind: 'logprob', message }] }
    }
    if (named.length === 0) {
      const declared = declaredAt(row, at)
      const message = `row ${row.rowId}: token ${at} is declared to come from call ${declared?.callId ?? 'none'}, the engine sampled it for ${exact.map((place) => place.choice.callId).join(', ')}`
      return { claims, deviations: [{ kind: 'call', message }] }
    }
    claims.push({ rowId: row.rowId, positions, places: exact })
    at = end - 1
  }
  return { claims, deviations: [] }
}

/** Names the first token that differs from the journal's nearest generation. */
function explain(row: ExportedRow, at: number, journal: readonly TrueChoice[]): Deviation {
  const declared = declaredAt(row, at)
  const callId = declared?.callId ?? null
  const named = journal.filter((choice) => callId !== null && choice.callId === callId)
  let nearest: { readonly choice: TrueChoice; readonly agree: number } | null = null
  for (const choice of named.length > 0 ? named : journal) {
    const agree = commonPrefix([...choice.prompt, ...choice.tokens], row.tokens)
    if (nearest === null || agree > nearest.agree) nearest = { choice, agree }
  }
  if (nearest === null)
    return { kind: 'token', message: `row ${row.rowId}: token ${at} is trained, the journal is empty` }
  const { choice, agree } = nearest
  const inPrompt = agree < choice.prompt.length
  const truth = inPrompt ? choice.prompt[agree] : choice.tokens[agree - choice.prompt.length]
  const place = inPrompt ? `prompt token ${agree}` : `sampled token ${agree - choice.prompt.length}`
  return {
    kind: inPrompt ? 'context' : 'token',
    message: `row ${row.rowId}: token ${agree} is ${row.tokens[agree] ?? 'missing'}, the engine has ${truth ?? 'no further token'} (${nameOf(choice)}, ${place}); token ${at} is trained without that context`,
  }
}

function declaredAt(row: ExportedRow, at: number): ExportedRow['declared'][number] | undefined {
  return row.declared.find((range) => range.start <= at && at < range.end)
}

/** The last trained position that a place explains. */
function lastTrained(row: ExportedRow, place: Place): number {
  return row.mask.lastIndexOf(1, place.start + place.length - 1)
}

function isDeclared(row: ExportedRow, place: Place, at: number): boolean {
  const declared = declaredAt(row, at)
  if (declared === undefined || declared.start !== place.start) return false
  if (declared.callId !== place.choice.callId) return false
  return declared.choice === null || declared.choice === place.choice.index
}

function sameLogprob(exported: number | undefined, truth: number | undefined): boolean {
  return exported !== undefined && truth !== undefined && Math.fround(exported) === Math.fround(truth)
}

function nameOf(choice: TrueChoice): string {
  return `request ${choice.requestId}, choice ${choice.index}`
}
