import { type Id, PaddockError } from '../../core/index.ts'
import { catalogueTables, parseSettled, requireHere, SqlCatalogue } from '../catalogue/index.ts'
import type {
  AnnouncedVersion,
  NamedAdapter,
  Attached,
  ClaimAsked,
  ClaimedDisposition,
  Disposed,
  Disposition,
  HandedRow,
  NotOwned,
  PolicyEventKind,
  RoundClaim,
  RunEvent,
  StepMetrics,
  TrainerBook,
} from '../contract/index.ts'
import { rememberUses } from '../memory/index.ts'
import { first, insert, type Sql, wholeRows } from '../sql/index.ts'
import { LeaseWatch } from './lease-watch.ts'
import { SqlRunState } from './run-state.ts'
import { policyOfClaim, stands } from './trainer-reader.ts'

const { incarnations, checkpoints, claims, claimPolicies, handed, dispositions, metrics, versions, settled } =
  catalogueTables

/** A disposition that used its row; `d` is its row. Inside a text of JSON a quotation mark has a backslash before it. */
const wasUsed = `d.record LIKE '%"outcome":"used"%'`

interface HandoutRow {
  readonly n: number
  readonly run: Id
  readonly group: Id
  readonly round: number
  /** '': the run has one. */
  readonly policy: string
  readonly state: string
  readonly claim: Id | null
  readonly lease_ms: number | null
  readonly renewals: number
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

/** A hand-out by what names it. */
type Placed = Pick<HandoutRow, 'group' | 'round' | 'policy'>

/** Whether exactly these weights are live. Throws `STORE_CONFLICT` where the label is that of other weights, or the number does not grow. */
export function isAnnounced(
  known: readonly AnnouncedVersion[],
  {
    ordinal,
    label,
    step,
    policy,
  }: Pick<AnnouncedVersion, 'ordinal' | 'label' | 'step'> & { readonly policy: string | null },
): boolean {
  const live = known.findLast((one) => (one.policy ?? null) === policy && !one.gone)
  if (live?.ordinal === ordinal && live.label === label && live.step === step) return true
  // Numbers only grow: the engine never goes back to older weights.
  const other =
    known.find((one) => one.label === label) ?? (live !== undefined && live.ordinal >= ordinal ? live : undefined)
  if (other === undefined) return false
  const which = `${other.ordinal} (${other.label}, ${other.step === null ? 'of no step' : `of step ${other.step}`}${other.gone ? ', undone' : ''})`
  throw new PaddockError('STORE_CONFLICT', `weights ${ordinal} (${label}) cannot be announced: ${which} is there`, {
    fix:
      other === live && other.ordinal === ordinal && other.step === step
        ? `These weights are live as ${other.label}: say that label, or none.`
        : 'Give each new weights a larger number and a label of their own; after going back, another label.',
  })
}

/** `TrainerBook` over SQL. Each method is one transaction, and those that write a run come one after the other. */
export class SqlTrainerBook extends SqlRunState implements TrainerBook {
  readonly #catalogue: SqlCatalogue

  /** `home`: the data directory that writes, where several share the catalogue. */
  constructor(sql: Sql, home: Id | null = null, leases = new LeaseWatch()) {
    super(sql, home, leases)
    this.#catalogue = new SqlCatalogue(sql, home)
  }

  attach(run: Id, { resumeStep, consumer }: { resumeStep: number | null; consumer: string | null }): Promise<Attached> {
    return this.#write(run, async (inside) => {
      if ((await first(inside.sql, 'SELECT 1 FROM runs WHERE id = ?', run)) === undefined) {
        throw new PaddockError('NOT_FOUND', `there is no run ${run}`)
      }
      await requireHere(inside.#catalogue, run)
      const incarnation = ((await inside.incarnation(run)) ?? 0) + 1
      const undoneFrom = resumeStep ?? -1
      const undone = await inside.sql.all<{ row: string; record: string }>(
        `SELECT d."row", d.record FROM dispositions d WHERE d.run = ? AND d.step > ? AND ${stands}`,
        run,
        undoneFrom,
      )
      await insert(inside.sql, incarnations, {
        run,
        incarnation,
        resume_step: resumeStep,
        undone_from: undoneFrom,
        consumer,
      })
      const said = undone.map(({ record }) => JSON.parse(record) as Disposition)
      await rememberUses(inside.sql, said, -1)
      const back = await inside.#comeBack(
        run,
        undone.map(({ row }) => row),
      )
      await inside.#catalogue.tell(run, 'attached', { incarnation, resumeStep, undone: undone.length })
      return {
        incarnation,
        resumeStep,
        undone: { dispositions: undone.length, rows: new Set(undone.map(({ row }) => row)).size },
        ...back,
      }
    })
  }

  checkpoint(run: Id, { incarnation, step }: { incarnation: number; step: number }): Promise<void> {
    return this.#write(run, async (inside) => {
      await inside.#fence(run, incarnation)
      await insert(inside.sql, checkpoints, { run, incarnation, step }, 'ON CONFLICT DO NOTHING')
    })
  }

  claim(
    run: Id,
    { policy = null, incarnation, consumer, maxGroups, leaseMs, ids }: ClaimAsked,
  ): Promise<readonly RoundClaim[]> {
    return this.#write(run, async (inside) => {
      await inside.#fence(run, incarnation)
      const most = Math.min(maxGroups, ids.length)
      const those = (state: string, end: string): Promise<readonly HandoutRow[]> =>
        inside.sql.all<HandoutRow>(
          `SELECT * FROM handouts WHERE run = ? AND state = '${state}' ${policy === null ? '' : 'AND policy = ?'} ${end}`,
          run,
          ...(policy === null ? [] : [policy]),
        )
      const over = (await those('claimed', '')).filter((held) => inside.leases.leftMs(held) === 0)
      const ready = await those('ready', `ORDER BY n LIMIT ${most}`)
      const free = [...over, ...ready].toSorted((a, b) => a.n - b.n).slice(0, most)
      const versions = await inside.versions(run)
      const claimed: RoundClaim[] = []
      for (const [i, handout] of free.entries()) {
        const { group, round, policy: own } = handout
        const live = versions.findLast((one) => !one.gone && (one.policy ?? '') === own)?.ordinal ?? null
        const id = ids[i] ?? ''
        const [last] = await wholeRows<ClaimRow>(
          inside.sql,
          claims,
          `WHERE "group" = ? AND round = ? AND ${policyOfClaim('round_claims')} = ? ORDER BY n DESC LIMIT 1`,
          group,
          round,
          own,
        )
        const again = last === undefined ? 0 : 1
        // Handed out again to the same trainer it has the same ages, so that its bytes are the same.
        const liveOrdinal = last?.incarnation === incarnation ? last.live_ordinal : live
        await inside.#giveUp(handout)
        await insert(inside.sql, claims, {
          id,
          run,
          group,
          round,
          incarnation,
          consumer,
          again,
          live_ordinal: liveOrdinal,
        })
        if (own !== '') await insert(inside.sql, claimPolicies, { claim: id, policy: own })
        await inside.sql.all(
          `UPDATE handouts SET state = 'claimed', claim = ?, lease_ms = ?, renewals = 0, again = ? WHERE n = ?`,
          id,
          leaseMs,
          again,
          handout.n,
        )
        inside.leases.forget(handout.claim)
        claimed.push(await inside.claimed(id))
      }
      return claimed
    })
  }

  renew(claimId: Id, { incarnation, leaseMs }: { incarnation: number; leaseMs: number }): Promise<void> {
    return this.#write({ claim: claimId }, async (inside) => {
      const { n } = await inside.#held(claimId, incarnation)
      await inside.sql.all('UPDATE handouts SET lease_ms = ?, renewals = renewals + 1 WHERE n = ?', leaseMs, n)
    })
  }

  giveBack(claimId: Id, { incarnation }: { incarnation: number }): Promise<void> {
    return this.#write({ claim: claimId }, async (inside) => {
      const claim = await inside.#claim(claimId)
      await inside.#fence(claim.run, incarnation)
      const handout = await inside.#handout(claim)
      if (handout.state === 'ready' && handout.claim === claimId) return
      await inside.#held(claimId, incarnation)
      await inside.#giveUp(handout)
      await inside.sql.all(`UPDATE handouts SET state = 'ready', lease_ms = NULL WHERE n = ?`, handout.n)
    })
  }

  async claimed(claimId: Id): Promise<RoundClaim> {
    const claim = await this.#claim(claimId)
    const handout = await this.#handout(claim)
    const { group, round, policy } = handout
    const [list] = await wholeRows<{ record: string }>(
      this.sql,
      settled,
      'WHERE "group" = ? AND round = ?',
      group,
      round,
    )
    if (list === undefined) throw new PaddockError('STORE_CORRUPT', `round ${round} of group ${group} lost its list`)
    return {
      id: claimId,
      runId: claim.run,
      groupId: group,
      round,
      policy: policy === '' ? null : policy,
      incarnation: claim.incarnation,
      consumer: claim.consumer,
      leaseMs: handout.claim === claimId ? Math.round(this.leases.leftMs(handout)) : 0,
      again: claim.again === 1,
      liveOrdinal: claim.live_ordinal,
      settled: parseSettled(list.record),
    }
  }

  handOut(claimId: Id, rows: readonly HandedRow[]): Promise<NotOwned> {
    return this.#write({ claim: claimId }, async (inside) => {
      const handout = await inside.#held(claimId, null)
      const { run, group, round } = handout
      const elsewhere: Id[] = []
      const usedRows: string[] = []
      for (const { rowId: row, segmentIds, labels } of rows) {
        await insert(
          inside.sql,
          handed,
          { claim: claimId, row, labels: JSON.stringify(labels) },
          'ON CONFLICT DO NOTHING',
        )
        if (await inside.#isUsed(row)) usedRows.push(row)
        // `WHERE true`: SQLite takes `ON CONFLICT` for a part of the join otherwise.
        await inside.sql.all(
          `INSERT INTO owned_segments (run, segment, "row", "group", round)
           SELECT ?, value, ?, ?, CAST(? AS INTEGER) FROM ${inside.sql.dialect.list} AS l WHERE true ON CONFLICT DO NOTHING`,
          run,
          row,
          group,
          round,
          inside.sql.list([...segmentIds]),
        )
        const others = await inside.sql.all<{ segment: Id }>(
          `SELECT segment FROM owned_segments WHERE run = ? AND segment IN ${inside.sql.dialect.list}
             AND NOT ("row" = ? AND "group" = ? AND round = ?)`,
          run,
          inside.sql.list([...segmentIds]),
          row,
          group,
          round,
        )
        const owned = new Set(others.map(({ segment }) => segment))
        elsewhere.push(...segmentIds.filter((segment) => owned.has(segment)))
      }
      if (rows.length === 0) await inside.#done(handout)
      return { segmentIds: elsewhere, usedRows }
    })
  }

  dispose(
    run: Id,
    { incarnation, dispositions: given }: { incarnation: number; dispositions: readonly ClaimedDisposition[] },
  ): Promise<Disposed> {
    return this.#write(run, async (inside) => {
      await inside.#fence(run, incarnation)
      const noted: Disposition[] = []
      const rounds = new Map<Id, HandoutRow>()
      for (const { claimId: claim, ...one } of given) {
        if (!rounds.has(claim)) rounds.set(claim, await inside.#stillOf(claim, run))
        if (
          (await first(inside.sql, 'SELECT 1 FROM handed_rows WHERE claim = ? AND "row" = ?', claim, one.row)) ===
          undefined
        ) {
          throw new PaddockError('NOT_FOUND', `row ${one.row} was not handed out with claim ${claim}`, {
            fix: 'Name rows by the row_id of a claimed group, each with the claim_id of that group.',
          })
        }
        if (await inside.#note(run, incarnation, one)) noted.push(one)
      }
      await rememberUses(inside.sql, noted, 1)
      const claimsDone: Id[] = []
      for (const [claim, place] of rounds) {
        const left = await first(
          inside.sql,
          `SELECT 1 FROM handed_rows h WHERE h.claim = ?
             AND NOT EXISTS (SELECT 1 FROM dispositions d WHERE d."row" = h."row" AND ${stands}) LIMIT 1`,
          claim,
        )
        if (left !== undefined) continue
        await inside.#done(place)
        claimsDone.push(claim)
      }
      return { accepted: noted.length, repeated: given.length - noted.length, claimsDone }
    })
  }

  putMetrics(run: Id, { incarnation, step, values, mismatch }: Omit<StepMetrics, 'undone'>): Promise<void> {
    return this.#write(run, async (inside) => {
      await inside.#fence(run, incarnation)
      await insert(inside.sql, metrics, { run, incarnation, step, record: JSON.stringify({ values, mismatch }) })
    })
  }

  announce(
    run: Id,
    { incarnation, ordinal, label, step, adapter = null, policy = null }: Parameters<TrainerBook['announce']>[1],
  ): Promise<void> {
    return this.#write(run, async (inside) => {
      await inside.#fence(run, incarnation)
      if (isAnnounced(await inside.versions(run), { ordinal, label, step, policy })) {
        if ((await inside.lastPolicy(run, policy))?.kind !== 'policy_live')
          await inside.#tellLive(run, { ordinal, label, incarnation, adapter, policy })
        return
      }
      await insert(inside.sql, versions, { run, ordinal, label, incarnation, step })
      await inside.#tellLive(run, { ordinal, label, incarnation, adapter, policy })
    })
  }

  async #tellLive(
    run: Id,
    {
      ordinal,
      label,
      incarnation,
      adapter,
      policy,
    }: Pick<AnnouncedVersion, 'ordinal' | 'label' | 'incarnation'> & {
      adapter: NamedAdapter | null
      policy: string | null
    },
  ): Promise<void> {
    const said = { version: ordinal, label, incarnation, ...(policy === null ? {} : { policy }) }
    await this.#catalogue.tell(run, 'policy_live', adapter === null ? said : { ...said, adapter })
  }

  async requireIncarnation(run: Id, incarnation: number): Promise<void> {
    await this.#fence(run, incarnation)
  }

  tell(
    run: Id,
    kind: Exclude<PolicyEventKind, 'policy_live'> | 'policy_engines' | 'gate_passed' | 'feed_stopped' | 'turn',
    data: RunEvent['data'],
  ): Promise<void> {
    return this.#write(run, (inside) => inside.#catalogue.tell(run, kind, data))
  }

  async closeRun(run: Id): Promise<void> {
    await requireHere(this.#catalogue, run)
    await insert(this.sql, catalogueTables.closedRuns, { run }, 'ON CONFLICT DO NOTHING')
  }

  /** What older incarnations held, and what is undone, may be claimed again; unless its weights are gone. */
  async #comeBack(
    run: Id,
    undoneRows: readonly string[],
  ): Promise<{ readonly again: readonly Id[]; readonly stale: readonly Id[] }> {
    const rounds = new Map<number, HandoutRow>()
    for (const row of await this.sql.all<HandoutRow>(
      `SELECT * FROM handouts WHERE run = ? AND state = 'claimed'`,
      run,
    )) {
      rounds.set(row.n, row)
    }
    for (const row of new Set(undoneRows)) {
      const found = await this.sql.all<HandoutRow>(
        `SELECT o.* FROM handed_rows h JOIN round_claims c ON c.id = h.claim
           JOIN handouts o ON o."group" = c."group" AND o.round = c.round AND o.policy = ${policyOfClaim('c')}
           WHERE h."row" = ?`,
        row,
      )
      for (const handout of found) rounds.set(handout.n, handout)
    }
    const gone = new Set((await this.versions(run)).flatMap((version) => (version.gone ? [version.label] : [])))
    const again: Id[] = []
    const stale: Id[] = []
    for (const handout of [...rounds.values()].toSorted((a, b) => a.n - b.n)) {
      const { n, group, claim } = handout
      await this.#giveUp(handout)
      const survives = claim === null || (await this.#survives(claim, gone))
      const state = survives ? 'ready' : 'stale'
      await this.sql.all(`UPDATE handouts SET state = ?, lease_ms = NULL WHERE n = ?`, state, n)
      ;(survives ? again : stale).push(group)
    }
    return { again: [...new Set(again)], stale: [...new Set(stale)] }
  }

  /** Whether a claim has a row that weights which are still there sampled, or none that was fetched. */
  async #survives(claim: Id, gone: ReadonlySet<string>): Promise<boolean> {
    const rows = await wholeRows<{ labels: string }>(this.sql, handed, 'WHERE claim = ?', claim)
    if (rows.length === 0) return true
    return rows.some(({ labels }) => !(JSON.parse(labels) as string[]).some((label) => gone.has(label)))
  }

  /** Segments of a hand-out are owned by nobody again, but for those that were used. Those of the other policies of its round stay. */
  async #giveUp({ group, round, policy }: Placed): Promise<void> {
    const own =
      policy === ''
        ? ''
        : `AND EXISTS (SELECT 1 FROM handed_rows h JOIN round_claims c ON c.id = h.claim
             WHERE h."row" = owned_segments."row" AND ${policyOfClaim('c')} = ?)`
    await this.sql.all(
      `DELETE FROM owned_segments WHERE "group" = ? AND round = ? AND NOT EXISTS
         (SELECT 1 FROM dispositions d WHERE d."row" = owned_segments."row" AND ${wasUsed} AND ${stands}) ${own}`,
      group,
      round,
      ...(policy === '' ? [] : [policy]),
    )
  }

  async #isUsed(row: string): Promise<boolean> {
    const found = await first(
      this.sql,
      `SELECT 1 FROM dispositions d WHERE d."row" = ? AND ${wasUsed} AND ${stands}`,
      row,
    )
    return found !== undefined
  }

  /** False where it is there already. */
  async #note(run: Id, incarnation: number, one: Disposition): Promise<boolean> {
    const { row, step, use } = one
    const record = JSON.stringify(one)
    const before = await first<{ record: string }>(
      this.sql,
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
    const used = await first<{ step: number }>(
      this.sql,
      `SELECT d.step FROM dispositions d
       WHERE d."row" = ? AND d.use = ? AND ${wasUsed} AND ${stands}`,
      row,
      use,
    )
    if (used !== undefined && one.outcome === 'used') {
      throw new PaddockError('STORE_CONFLICT', `row ${row} was used in step ${used.step} already, as use ${use}`, {
        fix: 'Do not train on it again; where that is meant (epochs, replay), count `use` up.',
      })
    }
    await insert(this.sql, dispositions, { run, incarnation, step, row, use, record })
    return true
  }

  async #done({ group, round, policy, claim }: HandoutRow): Promise<void> {
    this.leases.forget(claim)
    await this.sql.all(
      `UPDATE handouts SET state = 'done', lease_ms = NULL
       WHERE "group" = ? AND round = ? AND policy = ? AND state = 'claimed'`,
      group,
      round,
      policy,
    )
  }

  async #fence(run: Id, incarnation: number): Promise<void> {
    const last = await this.incarnation(run)
    if (last === incarnation) return
    const what = last === null ? 'nobody has attached to it' : `its incarnation is ${last}`
    throw new PaddockError('FENCED', `incarnation ${incarnation} does not speak for run ${run}: ${what}`, {
      data: { incarnation: last },
    })
  }

  async #claim(claimId: Id): Promise<ClaimRow & Placed> {
    const [row] = await wholeRows<ClaimRow>(this.sql, claims, 'WHERE id = ?', claimId)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no claim ${claimId}`)
    const [of] = await wholeRows<{ policy: string }>(this.sql, claimPolicies, 'WHERE claim = ?', claimId)
    return { ...row, policy: of?.policy ?? '' }
  }

  async #handout({ group, round, policy }: Placed): Promise<HandoutRow> {
    const row = await first<HandoutRow>(
      this.sql,
      'SELECT * FROM handouts WHERE "group" = ? AND round = ? AND policy = ?',
      group,
      round,
      policy,
    )
    if (row === undefined)
      throw new PaddockError('STORE_CORRUPT', `round ${round} of group ${group} is not among those settled`)
    return row
  }

  /** The round of a claim that still holds it, or that is done. Throws `CLAIM_OVER`, `NOT_FOUND`. */
  async #stillOf(claimId: Id, run: Id): Promise<HandoutRow> {
    const claim = await this.#claim(claimId)
    if (claim.run !== run) throw new PaddockError('NOT_FOUND', `run ${run} has no claim ${claimId}`)
    const handout = await this.#handout(claim)
    if (handout.claim === claimId && (handout.state === 'claimed' || handout.state === 'done')) return handout
    throw claimOver(claimId, handout)
  }

  /** The round that a claim holds. An expired lease holds it as long as nobody else has taken it. */
  async #held(claimId: Id, incarnation: number | null): Promise<HandoutRow> {
    const claim = await this.#claim(claimId)
    if (incarnation !== null) await this.#fence(claim.run, incarnation)
    const handout = await this.#handout(claim)
    if (handout.state === 'claimed' && handout.claim === claimId) return handout
    throw claimOver(claimId, handout)
  }

  /** Of the run that `of` gives; one writer of a run goes after the other. */
  #write<T>(of: Id | { readonly claim: Id }, work: (inside: SqlTrainerBook) => Promise<T>): Promise<T> {
    return this.sql.transaction(async (sql) => {
      const inside = new SqlTrainerBook(sql, this.home, this.leases)
      await sql.lock('runs', typeof of === 'string' ? of : (await inside.#claim(of.claim)).run)
      return work(inside)
    })
  }
}

function claimOver(claimId: Id, { group, round, state }: HandoutRow): PaddockError {
  return new PaddockError('CLAIM_OVER', `claim ${claimId} of round ${round} of group ${group} is over (${state})`)
}
