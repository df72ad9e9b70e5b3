/** Reads of the trainer's side of the catalogue over one connection. */
import type { Database } from 'better-sqlite3'
import type { Id } from '../../core/index.ts'
import { catalogueTables } from '../catalogue/index.ts'
import type { AnnouncedVersion, Disposition, HandedOutRow, StepMetrics, StoredDisposition } from '../contract/index.ts'
import { Statements, wholeRows } from '../sqlite/index.ts'

const { incarnations, claims, handed, dispositions, metrics, versions } = catalogueTables

/** A disposition that no later incarnation went back behind; `d` is its row. */
export const stands = `NOT EXISTS (SELECT 1 FROM trainer_incarnations j
  WHERE j.run = d.run AND j.incarnation > d.incarnation AND d.step > j.undone_from)`

/** The synchronous half of `TrainerReader`: each row is checked against its digest. Methods throw `STORE_CORRUPT`. */
export class SqliteTrainerReader {
  protected readonly statements: Statements

  constructor(db: Database) {
    this.statements = new Statements(db)
  }

  metrics(run: Id, { afterStep }: { afterStep: number | null }): readonly StepMetrics[] {
    const rows = wholeRows<{ incarnation: number; step: number; record: string }>(
      this.statements,
      metrics,
      'WHERE run = ? AND step > ? ORDER BY step, incarnation, n',
      run,
      afterStep ?? -1,
    )
    const back = this.incarnationsOf(run)
    const found: StepMetrics[] = []
    for (const { incarnation, step, record } of rows) {
      const { values, mismatch } = JSON.parse(record) as Pick<StepMetrics, 'values' | 'mismatch'>
      const last = found.at(-1)
      const same = last?.step === step && last.incarnation === incarnation ? last : null
      if (same !== null) found.pop()
      found.push({
        incarnation,
        step,
        values: { ...same?.values, ...values },
        mismatch: mismatch ?? same?.mismatch ?? null,
        undone: back.some((later) => later.incarnation > incarnation && step > (later.resume_step ?? -1)),
      })
    }
    return found
  }

  versions(run: Id): readonly AnnouncedVersion[] {
    const back = this.incarnationsOf(run)
    const rows = wholeRows<Omit<AnnouncedVersion, 'gone'>>(this.statements, versions, 'WHERE run = ? ORDER BY n', run)
    return rows.map(({ ordinal, label, incarnation, step }) => ({
      ordinal,
      label,
      incarnation,
      step,
      gone: back.some((later) => later.incarnation > incarnation && (step ?? -1) > (later.resume_step ?? -1)),
    }))
  }

  dispositions(run: Id, { rolloutId }: { rolloutId: Id | null }): readonly StoredDisposition[] {
    const back = this.incarnationsOf(run)
    const { where, values } = ofRollout(rolloutId)
    const rows = wholeRows<{ incarnation: number; step: number; record: string }>(
      this.statements,
      dispositions,
      `WHERE run = ? ${where} ORDER BY step, incarnation, "row", use`,
      run,
      ...values,
    )
    return rows.map(({ incarnation, step, record }) => ({
      ...(JSON.parse(record) as Disposition),
      incarnation,
      undone: back.some((later) => later.incarnation > incarnation && step > later.undone_from),
    }))
  }

  handedRows(run: Id, { rolloutId }: { rolloutId: Id | null }): readonly HandedOutRow[] {
    const { where, values } = ofRollout(rolloutId)
    const made = wholeRows<{ id: Id; group: Id; round: number; live_ordinal: number | null }>(
      this.statements,
      claims,
      'WHERE run = ? ORDER BY n',
      run,
    )
    const rows = wholeRows<{ claim: Id; row: string; labels: string }>(
      this.statements,
      handed,
      `WHERE claim IN (SELECT id FROM round_claims WHERE run = ?) ${where}`,
      run,
      ...values,
    )
    const byClaim = Map.groupBy(rows, ({ claim }) => claim)
    const last = new Map<string, HandedOutRow>()
    for (const { id, group, round, live_ordinal: liveOrdinal } of made) {
      for (const { row, labels } of byClaim.get(id) ?? []) {
        last.set(row, { row, groupId: group, round, labels: JSON.parse(labels) as string[], liveOrdinal })
      }
    }
    return [...last.values()]
  }

  protected incarnationsOf(
    run: Id,
  ): readonly { readonly incarnation: number; readonly resume_step: number | null; readonly undone_from: number }[] {
    return wholeRows<{ incarnation: number; resume_step: number | null; undone_from: number }>(
      this.statements,
      incarnations,
      'WHERE run = ? ORDER BY incarnation',
      run,
    )
  }
}

/** Names of a rollout's rows begin with its id and a colon; ';' sorts behind ':'. */
function ofRollout(rolloutId: Id | null): { readonly where: string; readonly values: readonly string[] } {
  if (rolloutId === null) return { where: '', values: [] }
  return { where: 'AND "row" >= ? AND "row" < ?', values: [`${rolloutId}:`, `${rolloutId};`] }
}
