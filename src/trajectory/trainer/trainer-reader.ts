/** Reads of the trainer's side of the catalogue. */
import type { Id } from '../../core/index.ts'
import { catalogueTables } from '../catalogue/index.ts'
import type {
  AnnouncedVersion,
  Disposition,
  HandedOutRow,
  StepMetrics,
  StoredDisposition,
  TrainerReader,
} from '../contract/index.ts'
import { type Sql, wholeRows } from '../sql/index.ts'

const { incarnations, claims, handed, dispositions, metrics, versions } = catalogueTables

/** A disposition that no later incarnation went back behind; `d` is its row. */
export const stands = `NOT EXISTS (SELECT 1 FROM trainer_incarnations j
  WHERE j.run = d.run AND j.incarnation > d.incarnation AND d.step > j.undone_from)`

/** `TrainerReader` over SQL: each row is checked against its digest. Methods throw `STORE_CORRUPT`. */
export class SqlTrainerReader implements TrainerReader {
  protected readonly sql: Sql

  constructor(sql: Sql) {
    this.sql = sql
  }

  async metrics(run: Id, { afterStep }: { afterStep: number | null }): Promise<readonly StepMetrics[]> {
    const rows = await wholeRows<{ incarnation: number; step: number; record: string }>(
      this.sql,
      metrics,
      'WHERE run = ? AND step > ? ORDER BY step, incarnation, n',
      run,
      afterStep ?? -1,
    )
    const back = await this.incarnationsOf(run)
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

  async versions(run: Id): Promise<readonly AnnouncedVersion[]> {
    const back = await this.incarnationsOf(run)
    const rows = await wholeRows<Omit<AnnouncedVersion, 'gone'>>(this.sql, versions, 'WHERE run = ? ORDER BY n', run)
    return rows.map(({ ordinal, label, incarnation, step }) => ({
      ordinal,
      label,
      incarnation,
      step,
      gone: back.some((later) => later.incarnation > incarnation && (step ?? -1) > (later.resume_step ?? -1)),
    }))
  }

  async dispositions(run: Id, { rolloutId }: { rolloutId: Id | null }): Promise<readonly StoredDisposition[]> {
    const back = await this.incarnationsOf(run)
    const { where, values } = ofRollout(rolloutId)
    const rows = await wholeRows<{ incarnation: number; step: number; record: string }>(
      this.sql,
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

  async handedRows(run: Id, { rolloutId }: { rolloutId: Id | null }): Promise<readonly HandedOutRow[]> {
    const { where, values } = ofRollout(rolloutId)
    const made = await wholeRows<{ id: Id; group: Id; round: number; live_ordinal: number | null }>(
      this.sql,
      claims,
      'WHERE run = ? ORDER BY n',
      run,
    )
    const rows = await wholeRows<{ claim: Id; row: string; labels: string }>(
      this.sql,
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
  ): Promise<
    readonly { readonly incarnation: number; readonly resume_step: number | null; readonly undone_from: number }[]
  > {
    return wholeRows<{ incarnation: number; resume_step: number | null; undone_from: number }>(
      this.sql,
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
