import type { Database } from 'better-sqlite3'
import { type Id, PaddockError } from '../../core/index.ts'
import { catalogueTables, parseSettled, type SqliteCatalogue } from '../catalogue/index.ts'
import type {
  AnnouncedVersion,
  Attached,
  ClaimAsked,
  Disposed,
  Disposition,
  HandedRow,
  HandoutCounts,
  MemberLengths,
  NamedEngines,
  NotOwned,
  PolicyEvent,
  PolicyEventKind,
  RoundClaim,
  RunEvent,
  RunLengths,
  StepMetrics,
} from '../contract/index.ts'
import { type DigestedTable, insertOf, rowDigest, wholeRows, type ColumnValue } from '../sqlite/index.ts'
import { SqliteTrainerReader, stands } from './sqlite-trainer-reader.ts'

const { incarnations, checkpoints, claims, handed, dispositions, metrics, versions, settled } = catalogueTables

/** The database's own clock, milliseconds since the epoch. */
const now = `(unixepoch('subsec') * 1000.0)`

const noMembers: MemberLengths = { members: 0, meanTokens: null, mostTokens: null }

interface HandoutRow {
  readonly n: number
  readonly run: Id
  readonly group: Id
  readonly round: number
  readonly state: string
  readonly claim: Id | null
  readonly expires_at: number | null
  readonly again: number
}

interface ClaimRow {
  readonly id: Id
  readonly run: Id
  readonly group: Id
  readonly round: number
  readonly incarnation: number
  readonly consumer: string
  readonly again: number
  readonly live_ordinal: number | null
}

/** The synchronous half of `TrainerBook`. Each method is one transaction. */
export class SqliteTrainerBook extends SqliteTrainerReader {
  readonly #db: Database
  readonly #catalogue: SqliteCatalogue

  constructor(db: Database, catalogue: SqliteCatalogue) {
    super(db)
    this.#db = db
    this.#catalogue = catalogue
  }

  attach(run: Id, { resumeStep, consumer }: { resumeStep: number | null; consumer: string | null }): Attached {
    return this.#write(() => {
      if (this.statements.get('SELECT 1 FROM runs WHERE id = ?', run) === undefined) {
        throw new PaddockError('NOT_FOUND', `there is no run ${run}`)
      }
      const incarnation = (this.incarnation(run) ?? 0) + 1
      const final =
        this.statements.get<{ step: number | null }>(
          'SELECT max(step) AS step FROM trainer_checkpoints WHERE run = ?',
          run,
        )?.step ?? -1
      const undoneFrom = Math.max(resumeStep ?? -1, final)
      const lost = this.statements.all<{ row: string; step: number }>(
        `SELECT d."row", d.step FROM dispositions d WHERE d.run = ? AND d.step > ? AND ${stands}`,
        run,
        resumeStep ?? -1,
      )
      const undone = lost.filter(({ step }) => step > undoneFrom)
      this.#insert(incarnations, { run, incarnation, resume_step: resumeStep, undone_from: undoneFrom, consumer })
      const back = this.#comeBack(
        run,
        undone.map(({ row }) => row),
      )
      this.#catalogue.tell(run, 'attached', { incarnation, resumeStep, undone: undone.length })
      return {
        incarnation,
        resumeStep,
        undone: { dispositions: undone.length, rows: new Set(undone.map(({ row }) => row)).size },
        final: lost.length - undone.length,
        ...back,
      }
    })
  }

  checkpoint(run: Id, { incarnation, step }: { incarnation: number; step: number }): void {
    this.#write(() => {
      this.#fence(run, incarnation)
      this.#insert(checkpoints, { run, incarnation, step }, 'ON CONFLICT DO NOTHING')
    })
  }

  claim(run: Id, { incarnation, consumer, maxGroups, leaseMs, ids }: ClaimAsked): readonly RoundClaim[] {
    return this.#write(() => {
      this.#fence(run, incarnation)
      const free = this.statements.all<HandoutRow>(
        `SELECT * FROM handouts WHERE run = ? AND state IN ('ready', 'claimed')
           AND (state = 'ready' OR expires_at <= ${now}) ORDER BY n LIMIT ?`,
        run,
        Math.min(maxGroups, ids.length),
      )
      const live = this.versions(run).findLast(({ gone }) => !gone)?.ordinal ?? null
      return free.map((handout, i) => {
        const { group, round } = handout
        const id = ids[i] ?? ''
        const [last] = wholeRows<ClaimRow>(
          this.statements,
          claims,
          'WHERE "group" = ? AND round = ? ORDER BY n DESC LIMIT 1',
          group,
          round,
        )
        const again = last === undefined ? 0 : 1
        // Handed out again to the same trainer it has the same ages, so that its bytes are the same.
        const liveOrdinal = last?.incarnation === incarnation ? last.live_ordinal : live
        this.#giveUp(group, round)
        this.#insert(claims, { id, run, group, round, incarnation, consumer, again, live_ordinal: liveOrdinal })
        this.statements.run(
          `UPDATE handouts SET state = 'claimed', claim = ?, expires_at = ${now} + ?, again = ? WHERE n = ?`,
          id,
          leaseMs,
          again,
          handout.n,
        )
        return this.claimed(id)
      })
    })
  }

  nextExpiry(run: Id): number | null {
    const found = this.statements.get<{ wait: number | null }>(
      `SELECT min(expires_at) - ${now} AS wait FROM handouts WHERE run = ? AND state = 'claimed'`,
      run,
    )
    return found?.wait === null || found === undefined ? null : Math.max(0, found.wait)
  }

  renew(claimId: Id, { incarnation, leaseMs }: { incarnation: number; leaseMs: number }): void {
    this.#write(() => {
      const { n } = this.#held(claimId, incarnation)
      this.statements.run(`UPDATE handouts SET expires_at = ${now} + ? WHERE n = ?`, leaseMs, n)
    })
  }

  giveBack(claimId: Id, { incarnation }: { incarnation: number }): void {
    this.#write(() => {
      const claim = this.#claim(claimId)
      this.#fence(claim.run, incarnation)
      const handout = this.#handout(claim.group, claim.round)
      if (handout.state === 'ready' && handout.claim === claimId) return
      this.#held(claimId, incarnation)
      this.#giveUp(claim.group, claim.round)
      this.statements.run(`UPDATE handouts SET state = 'ready', expires_at = NULL WHERE n = ?`, handout.n)
    })
  }

  claimed(claimId: Id): RoundClaim {
    const claim = this.#claim(claimId)
    const { group, round, expires_at: expiresAt } = this.#handout(claim.group, claim.round)
    const [list] = wholeRows<{ record: string }>(
      this.statements,
      settled,
      'WHERE "group" = ? AND round = ?',
      group,
      round,
    )
    if (list === undefined) throw new PaddockError('STORE_CORRUPT', `round ${round} of group ${group} lost its list`)
    const at = this.statements.get<{ now: number }>(`SELECT ${now} AS now`)?.now ?? 0
    return {
      id: claimId,
      runId: claim.run,
      groupId: group,
      round,
      incarnation: claim.incarnation,
      consumer: claim.consumer,
      leaseMs: Math.max(0, Math.round((expiresAt ?? at) - at)),
      again: claim.again === 1,
      liveOrdinal: claim.live_ordinal,
      settled: parseSettled(list.record),
    }
  }

  handOut(claimId: Id, rows: readonly HandedRow[]): NotOwned {
    return this.#write(() => {
      const { run, group, round } = this.#held(claimId, null)
      const elsewhere: Id[] = []
      const usedRows: string[] = []
      for (const { rowId: row, segmentIds, labels } of rows) {
        this.#insert(handed, { claim: claimId, row, labels: JSON.stringify(labels) }, 'ON CONFLICT DO NOTHING')
        if (this.#isUsed(row)) usedRows.push(row)
        for (const segment of segmentIds) {
          this.statements.run(
            `INSERT INTO owned_segments (run, segment, "row", "group", round) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
            run,
            segment,
            row,
            group,
            round,
          )
          const owner = this.statements.get<{ row: string; group: Id; round: number }>(
            'SELECT "row", "group", round FROM owned_segments WHERE run = ? AND segment = ?',
            run,
            segment,
          )
          if (owner?.row !== row || owner.group !== group || owner.round !== round) elsewhere.push(segment)
        }
      }
      if (rows.length === 0) this.#done(group, round)
      return { segmentIds: elsewhere, usedRows }
    })
  }

  dispose(
    run: Id,
    { incarnation, dispositions: given }: { incarnation: number; dispositions: readonly Disposition[] },
  ): Disposed {
    return this.#write(() => {
      this.#fence(run, incarnation)
      let repeated = 0
      const rounds = new Map<string, { readonly group: Id; readonly round: number }>()
      for (const one of given) {
        const place = this.statements.get<{ group: Id; round: number }>(
          `SELECT c."group", c.round FROM handed_rows h JOIN round_claims c ON c.id = h.claim
           WHERE h."row" = ? AND c.run = ? ORDER BY c.n DESC LIMIT 1`,
          one.row,
          run,
        )
        if (place === undefined) {
          throw new PaddockError('NOT_FOUND', `row ${one.row} was never handed out in run ${run}`, {
            fix: 'Name rows by the row_id of a claimed group.',
          })
        }
        rounds.set(`${place.group}/${place.round}`, place)
        if (!this.#note(run, incarnation, one)) repeated += 1
      }
      const claimsDone: Id[] = []
      for (const { group, round } of rounds.values()) {
        const { claim, state } = this.#handout(group, round)
        if (claim === null || (state !== 'claimed' && state !== 'done')) continue
        const left = this.statements.get(
          `SELECT 1 FROM handed_rows h WHERE h.claim = ?
             AND NOT EXISTS (SELECT 1 FROM dispositions d WHERE d."row" = h."row" AND ${stands}) LIMIT 1`,
          claim,
        )
        if (left !== undefined) continue
        this.#done(group, round)
        claimsDone.push(claim)
      }
      return { accepted: given.length - repeated, repeated, claimsDone }
    })
  }

  putMetrics(run: Id, { incarnation, step, values, mismatch }: Omit<StepMetrics, 'undone'>): void {
    this.#write(() => {
      this.#fence(run, incarnation)
      this.#insert(metrics, { run, incarnation, step, record: JSON.stringify({ values, mismatch }) })
    })
  }

  announce(run: Id, { incarnation, ordinal, label }: { incarnation: number; ordinal: number; label: string }): void {
    this.#write(() => {
      this.#fence(run, incarnation)
      const known = this.versions(run)
      const other = known.find((one) => one.label === label || (one.ordinal === ordinal && !one.gone))
      if (other !== undefined) {
        if (other.label === label && other.ordinal === ordinal && !other.gone) {
          if (this.lastPolicy(run)?.kind !== 'policy_live') this.#tellLive(run, { ordinal, label, incarnation })
          return
        }
        const which = `${other.ordinal} (${other.label}${other.gone ? ', undone' : ''})`
        throw new PaddockError(
          'STORE_CONFLICT',
          `weights ${ordinal} (${label}) cannot be announced: ${which} is there`,
          {
            fix: 'Give each new weights a number and a label of their own; after going back, another label.',
          },
        )
      }
      const last = this.statements.get<{ step: number | null }>(
        `SELECT max(d.step) AS step FROM dispositions d WHERE d.run = ? AND ${stands}`,
        run,
      )
      this.#insert(versions, { run, ordinal, label, incarnation, step: last?.step ?? null })
      this.#tellLive(run, { ordinal, label, incarnation })
    })
  }

  #tellLive(
    run: Id,
    { ordinal, label, incarnation }: Pick<AnnouncedVersion, 'ordinal' | 'label' | 'incarnation'>,
  ): void {
    this.#catalogue.tell(run, 'policy_live', { version: ordinal, label, incarnation })
  }

  requireIncarnation(run: Id, incarnation: number): void {
    this.#fence(run, incarnation)
  }

  tell(
    run: Id,
    kind: Exclude<PolicyEventKind, 'policy_live'> | 'policy_engines' | 'gate_passed',
    data: RunEvent['data'],
  ): void {
    this.#write(() => this.#catalogue.tell(run, kind, data))
  }

  passedGate(run: Id): boolean {
    return (
      this.statements.get(`SELECT 1 FROM run_events WHERE run = ? AND kind = 'gate_passed' LIMIT 1`, run) !== undefined
    )
  }

  lastPolicy(runId: Id): PolicyEvent | null {
    const [row] = wholeRows<{ seq: number; kind: PolicyEventKind; at: number; data: string }>(
      this.statements,
      catalogueTables.runEvents,
      `WHERE run = ? AND kind GLOB 'policy_*' AND kind <> 'policy_engines' ORDER BY seq DESC LIMIT 1`,
      runId,
    )
    if (row === undefined) return null
    const { seq, kind, at, data } = row
    return { seq, runId, kind, at, data: JSON.parse(data) as RunEvent['data'] }
  }

  policyOwner(): Id | null {
    const found = this.statements.get<{ run: Id }>(
      `SELECT run FROM run_events WHERE kind GLOB 'policy_*' AND run NOT IN (SELECT run FROM closed_runs)
       ORDER BY seq DESC LIMIT 1`,
    )
    return found?.run ?? null
  }

  engines(): NamedEngines | null {
    const [row] = wholeRows<{ run: Id; data: string }>(
      this.statements,
      catalogueTables.runEvents,
      `WHERE kind GLOB 'policy_*' AND kind = 'policy_engines' AND run NOT IN (SELECT run FROM closed_runs)
       ORDER BY seq DESC LIMIT 1`,
    )
    if (row === undefined) return null
    // Only `tell` of this kind writes it.
    const { engines, identity } = JSON.parse(row.data) as Pick<NamedEngines, 'engines' | 'identity'>
    return { runId: row.run, engines, identity }
  }

  incarnation(run: Id): number | null {
    const found = this.statements.get<{ last: number | null }>(
      'SELECT max(incarnation) AS last FROM trainer_incarnations WHERE run = ?',
      run,
    )
    return found?.last ?? null
  }

  counts(run: Id): HandoutCounts {
    const rows = this.statements.all<{ state: string; count: number }>(
      'SELECT state, count(*) AS count FROM handouts WHERE run = ? GROUP BY state',
      run,
    )
    const of = (state: string): number => rows.find((row) => row.state === state)?.count ?? 0
    const opened = this.statements.get<{ count: number }>(
      `SELECT count(*) AS count FROM group_rounds r JOIN groups g ON g.id = r."group" WHERE g.run = ?`,
      run,
    )
    const settledRounds = rows.reduce((sum, { count }) => sum + count, 0)
    return {
      running: (opened?.count ?? 0) - settledRounds,
      settledUnclaimed: of('ready'),
      claimed: of('claimed'),
      done: of('done'),
      stale: of('stale'),
      failed: of('failed'),
    }
  }

  openRounds(run: Id): readonly { readonly groupId: Id; readonly round: number }[] {
    return this.statements.all<{ groupId: Id; round: number }>(
      `SELECT r."group" AS groupId, r.round FROM group_rounds r JOIN groups g ON g.id = r."group"
       WHERE g.run = ? AND NOT EXISTS (SELECT 1 FROM handouts o
         WHERE o."group" = r."group" AND o.round = r.round AND o.state IN ('done', 'stale', 'failed')) ORDER BY g.n, r.round`,
      run,
    )
  }

  staleGroups(run: Id): readonly Id[] {
    return this.statements
      .all<{ id: Id }>(`SELECT DISTINCT "group" AS id FROM handouts WHERE run = ? AND state = 'stale'`, run)
      .map(({ id }) => id)
  }

  settleOrder(group: Id, round: number): number | null {
    const found = this.statements.get<{ n: number }>(
      'SELECT n FROM handouts WHERE "group" = ? AND round = ?',
      group,
      round,
    )
    return found?.n ?? null
  }

  carryingGroups(run: Id): readonly Id[] {
    return this.statements
      .all<{ id: Id }>(
        `SELECT g.id FROM groups g JOIN settled_rounds s ON s."group" = g.id
         WHERE g.run = ? AND s.record ->> '$.carried.members' > 0 AND NOT EXISTS
           (SELECT 1 FROM group_rounds r WHERE r."group" = g.id AND r.round > s.round) ORDER BY g.n`,
        run,
      )
      .map(({ id }) => id)
  }

  lengths(run: Id): RunLengths {
    const rows = this.statements.all<MemberLengths & { out: string | null }>(
      `SELECT m.value ->> '$.out' AS out, count(*) AS members, avg(m.value ->> '$.sampledTokens') AS meanTokens,
         max(m.value ->> '$.sampledTokens') AS mostTokens
       FROM groups g JOIN settled_rounds s ON s."group" = g.id, json_each(s.record, '$.members') m
       WHERE g.run = ? GROUP BY 1`,
      run,
    )
    const of = (wanted: string | null): MemberLengths => {
      const { members, meanTokens, mostTokens } = rows.find(({ out }) => out === wanted) ?? noMembers
      return { members, meanTokens, mostTokens }
    }
    return { kept: of(null), censored: of('censored') }
  }

  closeRun(run: Id): void {
    this.#insert(catalogueTables.closedRuns, { run }, 'ON CONFLICT DO NOTHING')
  }

  isClosed(run: Id): boolean {
    return wholeRows(this.statements, catalogueTables.closedRuns, 'WHERE run = ?', run).length > 0
  }

  /** What older incarnations held, and what is undone, may be claimed again; unless its weights are gone. */
  #comeBack(run: Id, undoneRows: readonly string[]): { readonly again: readonly Id[]; readonly stale: readonly Id[] } {
    const rounds = new Map<number, HandoutRow>()
    for (const row of this.statements.all<HandoutRow>(
      `SELECT * FROM handouts WHERE run = ? AND state = 'claimed'`,
      run,
    )) {
      rounds.set(row.n, row)
    }
    for (const row of new Set(undoneRows)) {
      const found = this.statements.all<HandoutRow>(
        `SELECT o.* FROM handed_rows h JOIN round_claims c ON c.id = h.claim
           JOIN handouts o ON o."group" = c."group" AND o.round = c.round WHERE h."row" = ?`,
        row,
      )
      for (const handout of found) rounds.set(handout.n, handout)
    }
    const gone = new Set(this.versions(run).flatMap((version) => (version.gone ? [version.label] : [])))
    const again: Id[] = []
    const stale: Id[] = []
    for (const { n, group, round, claim } of [...rounds.values()].toSorted((a, b) => a.n - b.n)) {
      this.#giveUp(group, round)
      const survives = claim === null || this.#survives(claim, gone)
      const state = survives ? 'ready' : 'stale'
      this.statements.run(`UPDATE handouts SET state = ?, expires_at = NULL WHERE n = ?`, state, n)
      ;(survives ? again : stale).push(group)
    }
    return { again, stale }
  }

  /** Whether a claim has a row that weights which are still there sampled, or none that was fetched. */
  #survives(claim: Id, gone: ReadonlySet<string>): boolean {
    const rows = wholeRows<{ labels: string }>(this.statements, handed, 'WHERE claim = ?', claim)
    if (rows.length === 0) return true
    return rows.some(({ labels }) => !(JSON.parse(labels) as string[]).some((label) => gone.has(label)))
  }

  /** Segments of a round are owned by nobody again, but for those that were used. */
  #giveUp(group: Id, round: number): void {
    this.statements.run(
      `DELETE FROM owned_segments WHERE "group" = ? AND round = ? AND NOT EXISTS
         (SELECT 1 FROM dispositions d WHERE d."row" = owned_segments."row" AND d.record ->> '$.outcome' = 'used' AND ${stands})`,
      group,
      round,
    )
  }

  #isUsed(row: string): boolean {
    const found = this.statements.get(
      `SELECT 1 FROM dispositions d WHERE d."row" = ? AND d.record ->> '$.outcome' = 'used' AND ${stands}`,
      row,
    )
    return found !== undefined
  }

  /** False where it is there already. */
  #note(run: Id, incarnation: number, one: Disposition): boolean {
    const { row, step, use } = one
    const record = JSON.stringify(one)
    const before = this.statements.get<{ record: string }>(
      'SELECT record FROM dispositions WHERE run = ? AND incarnation = ? AND step = ? AND "row" = ? AND use = ?',
      run,
      incarnation,
      step,
      row,
      use,
    )
    if (before?.record === record) return false
    if (before !== undefined) {
      throw new PaddockError('STORE_CONFLICT', `another disposition of row ${row} stands for step ${step}, use ${use}`)
    }
    const used = this.statements.get<{ step: number }>(
      `SELECT d.step FROM dispositions d
       WHERE d."row" = ? AND d.use = ? AND d.record ->> '$.outcome' = 'used' AND ${stands}`,
      row,
      use,
    )
    if (used !== undefined && one.outcome === 'used') {
      throw new PaddockError('STORE_CONFLICT', `row ${row} was used in step ${used.step} already, as use ${use}`, {
        fix: 'Do not train on it again; where that is meant (epochs, replay), count `use` up.',
      })
    }
    this.#insert(dispositions, { run, incarnation, step, row, use, record })
    return true
  }

  #done(group: Id, round: number): void {
    this.statements.run(
      `UPDATE handouts SET state = 'done', expires_at = NULL WHERE "group" = ? AND round = ? AND state = 'claimed'`,
      group,
      round,
    )
  }

  #fence(run: Id, incarnation: number): void {
    const last = this.incarnation(run)
    if (last === incarnation) return
    const what = last === null ? 'nobody has attached to it' : `its incarnation is ${last}`
    throw new PaddockError('FENCED', `incarnation ${incarnation} does not speak for run ${run}: ${what}`, {
      data: { incarnation: last },
    })
  }

  #claim(claimId: Id): ClaimRow {
    const [row] = wholeRows<ClaimRow>(this.statements, claims, 'WHERE id = ?', claimId)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no claim ${claimId}`)
    return row
  }

  #handout(group: Id, round: number): HandoutRow {
    const row = this.statements.get<HandoutRow>('SELECT * FROM handouts WHERE "group" = ? AND round = ?', group, round)
    if (row === undefined)
      throw new PaddockError('STORE_CORRUPT', `round ${round} of group ${group} is not among those settled`)
    return row
  }

  /** The round that a claim holds. An expired lease holds it as long as nobody else has taken it. */
  #held(claimId: Id, incarnation: number | null): HandoutRow {
    const { run, group, round } = this.#claim(claimId)
    if (incarnation !== null) this.#fence(run, incarnation)
    const handout = this.#handout(group, round)
    if (handout.state === 'claimed' && handout.claim === claimId) return handout
    throw new PaddockError(
      'CLAIM_OVER',
      `claim ${claimId} of round ${round} of group ${group} is over (${handout.state})`,
    )
  }

  #insert<Column extends string>(
    table: DigestedTable<Column>,
    row: Readonly<Record<Column, ColumnValue>>,
    conflict = '',
  ): void {
    const values = table.columns.map((column) => row[column])
    this.statements.run(insertOf(table, [], conflict), ...values, rowDigest(values))
  }

  #write<T>(work: () => T): T {
    return this.#db.transaction(work).immediate()
  }
}
