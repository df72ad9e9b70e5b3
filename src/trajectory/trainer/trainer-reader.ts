/** Reads of the trainer's side of the catalogue. */
import { type Id, present } from '../../core/index.ts'
import { catalogueTables, type CoveredTable } from '../catalogue/index.ts'
import type {
  AnnouncedVersion,
  Disposition,
  HandedOutRow,
  StepMetrics,
  StoredDisposition,
  TrainerNews,
  TrainerPlace,
  TrainerReader,
} from '../contract/index.ts'
import { first, type Sql, wholeRows } from '../sql/index.ts'
import { selectOf, whole } from '../sqlite/index.ts'

const { runEvents, incarnations, claims, handed, dispositions, metrics, versions } = catalogueTables

const beginning: TrainerPlace = { incarnations: 0, versions: 0, claims: 0, dispositions: 0, metrics: 0 }

interface Numbered {
  readonly n: number
}

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
    const policies = await this.policyOfLabels(run)
    return rows.map(({ ordinal, label, incarnation, step }) => ({
      ...present({ policy: policies.get(label) }),
      ordinal,
      label,
      incarnation,
      step,
      gone: back.some((later) => later.incarnation > incarnation && (step ?? -1) > (later.resume_step ?? -1)),
    }))
  }

  async ordinals(run: Id, labels: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await wholeRows<Omit<AnnouncedVersion, 'gone'>>(
      this.sql,
      versions,
      `WHERE run = ? AND label IN ${this.sql.dialect.list} ORDER BY n`,
      run,
      this.sql.list(labels),
    )
    return new Map(rows.map(({ label, ordinal }) => [label, ordinal]))
  }

  async dispositions(run: Id, { rolloutId }: { rolloutId: Id }): Promise<readonly StoredDisposition[]> {
    const back = await this.incarnationsOf(run)
    const rows = await wholeRows<{ incarnation: number; step: number; record: string }>(
      this.sql,
      dispositions,
      `WHERE run = ? AND ${ofRollout} ORDER BY step, incarnation, "row", use`,
      run,
      ...rowNames(rolloutId),
    )
    return rows.map(({ incarnation, step, record }) => ({
      ...(JSON.parse(record) as Disposition),
      incarnation,
      undone: back.some((later) => later.incarnation > incarnation && step > later.undone_from),
    }))
  }

  async handedRows(run: Id, { rolloutId }: { rolloutId: Id }): Promise<readonly HandedOutRow[]> {
    const rows = await wholeRows<{ claim: Id; row: string; labels: string }>(
      this.sql,
      handed,
      `WHERE ${ofRollout}`,
      ...rowNames(rolloutId),
    )
    const made = await wholeRows<{ id: Id; group: Id; round: number; live_ordinal: number | null }>(
      this.sql,
      claims,
      `WHERE run = ? AND id IN ${this.sql.dialect.list} ORDER BY n`,
      run,
      this.sql.list([...new Set(rows.map(({ claim }) => claim))]),
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

  async news(run: Id, { after, limit }: { after: TrainerPlace | null; limit: number }): Promise<TrainerNews> {
    const from = after ?? beginning
    const back = await wholeRows<{ incarnation: number; resume_step: number | null; undone_from: number }>(
      this.sql,
      incarnations,
      'WHERE run = ? AND incarnation > ? ORDER BY incarnation LIMIT ?',
      run,
      from.incarnations,
      limit,
    )
    const behind = async <Row extends object>(table: CoveredTable, n: number): Promise<readonly (Row & Numbered)[]> => {
      const text = selectOf(table, 'WHERE run = ? AND n > ? ORDER BY n LIMIT ?', ['n'])
      return (await this.sql.all<Row & Numbered>(text, run, n, limit)).map((row) => whole(table, row))
    }
    const announced = await behind<Omit<AnnouncedVersion, 'gone'>>(versions, from.versions)
    const made = await behind<{ id: Id; group: Id; round: number; live_ordinal: number | null }>(claims, from.claims)
    const given = await behind<{ incarnation: number; record: string }>(dispositions, from.dispositions)
    const told = await behind<{ incarnation: number; step: number; record: string }>(metrics, from.metrics)
    return {
      incarnations: back.map(({ incarnation, resume_step: resumeStep, undone_from: undoneFrom }) => ({
        incarnation,
        resumeStep,
        undoneFrom,
      })),
      versions: announced.map(({ ordinal, label, incarnation, step }) => ({ ordinal, label, incarnation, step })),
      claims: made.map(({ n, id, group: groupId, round, live_ordinal: liveOrdinal }) => ({
        n,
        id,
        groupId,
        round,
        liveOrdinal,
      })),
      dispositions: given.map(({ incarnation, record }) => ({ ...(JSON.parse(record) as Disposition), incarnation })),
      metrics: told.map(({ incarnation, step, record }) => ({
        ...(JSON.parse(record) as Pick<StepMetrics, 'values' | 'mismatch'>),
        incarnation,
        step,
      })),
      place: {
        incarnations: back.at(-1)?.incarnation ?? from.incarnations,
        versions: announced.at(-1)?.n ?? from.versions,
        claims: made.at(-1)?.n ?? from.claims,
        dispositions: given.at(-1)?.n ?? from.dispositions,
        metrics: told.at(-1)?.n ?? from.metrics,
      },
      isAll: [back, announced, made, given, told].every(({ length }) => length < limit),
    }
  }

  async rowsOfClaim(
    claimId: Id,
    { after, limit }: { after: string; limit: number },
  ): Promise<{ readonly rows: readonly Pick<HandedOutRow, 'row' | 'labels'>[]; readonly isOver: boolean }> {
    // Asked before the rows are read: what is over by then gets none.
    const held = await first(
      this.sql,
      `SELECT 1 FROM round_claims c JOIN handouts o ON o."group" = c."group" AND o.round = c.round AND o.policy = ${policyOfClaim('c')}
       WHERE c.id = ? AND o.state = 'claimed' AND o.claim = c.id`,
      claimId,
    )
    const rows = await wholeRows<{ row: string; labels: string }>(
      this.sql,
      handed,
      'WHERE claim = ? AND "row" > ? ORDER BY "row" LIMIT ?',
      claimId,
      after,
      limit,
    )
    return {
      rows: rows.map(({ row, labels }) => ({ row, labels: JSON.parse(labels) as string[] })),
      isOver: held === undefined,
    }
  }

  async handedLabels(rolloutIds: readonly Id[]): Promise<ReadonlyMap<Id, readonly string[]>> {
    const found = new Map<Id, readonly string[]>()
    for (const id of rolloutIds) {
      const rows = await wholeRows<{ row: string; labels: string }>(
        this.sql,
        handed,
        `WHERE ${ofRollout} ORDER BY "row"`,
        ...rowNames(id),
      )
      if (rows.length === 0) continue
      found.set(id, [...new Set(rows.flatMap(({ labels }) => JSON.parse(labels) as string[]))])
    }
    return found
  }

  /** The policy of each announced weights, by label; empty where a run has one. */
  protected async policyOfLabels(run: Id): Promise<ReadonlyMap<string, string>> {
    const rows = await wholeRows<{ data: string }>(
      this.sql,
      runEvents,
      `WHERE run = ? AND ${this.sql.dialect.isPolicyEvent} AND kind = 'policy_live' AND data LIKE '%"policy":"%' ORDER BY seq`,
      run,
    )
    // Only `announce` writes it.
    const told = rows.map(({ data }) => JSON.parse(data) as { label: string; policy: string })
    return new Map(told.map(({ label, policy }) => [label, policy]))
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

/** The policy that a claim is of; '': the run has one. `claims` is its table. */
export function policyOfClaim(claims: string): string {
  return `coalesce((SELECT cp.policy FROM claim_policies cp WHERE cp.claim = ${claims}.id), '')`
}

/** Rows of a rollout: the values are {@link rowNames}. */
const ofRollout = '"row" >= ? AND "row" < ?'

/** Names of a rollout's rows begin with its id and a colon; ';' sorts behind ':'. */
function rowNames(rolloutId: Id): readonly string[] {
  return [`${rolloutId}:`, `${rolloutId};`]
}
