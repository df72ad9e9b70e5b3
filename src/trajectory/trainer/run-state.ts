/** Reads of where a trainer's run stands: its rounds, weights, feeds and lengths. */
import type { Id } from '../../core/index.ts'
import { catalogueTables, parseSettled } from '../catalogue/index.ts'
import type {
  FeedStop,
  HandoutCounts,
  NamedAdapter,
  NamedEngines,
  PolicyEvent,
  PolicyEventKind,
  RunEvent,
  RunLengths,
  SettledRound,
} from '../contract/index.ts'
import { first, type Sql, wholeRows } from '../sql/index.ts'
import { type Lease, type LeaseWatch } from './lease-watch.ts'
import { KeptLengths } from './run-lengths.ts'
import { SqlTrainerReader } from './trainer-reader.ts'

/** Runs whose lengths are kept. */
const keptLengths = 4

const ofRound = 'o."group" = r."group" AND o.round = r.round'
const over = `o.state IN ('done', 'stale', 'failed')`

/** How far a hand-out is, the least first; `handouts` is its table. */
const rank = (handouts: string): string =>
  `CASE ${handouts}.state WHEN 'ready' THEN 0 WHEN 'claimed' THEN 1 WHEN 'done' THEN 2 WHEN 'stale' THEN 3 ELSE 4 END`

/** Events of one policy, whose name needs no escaping; null: all. A quotation mark inside a text of JSON has a backslash before it. */
function ofPolicy(policy: string | null): { readonly text: string; readonly values: readonly string[] } {
  return policy === null ? { text: '', values: [] } : { text: 'AND data LIKE ?', values: [`%"policy":"${policy}"%`] }
}

/** The reads of `TrainerBook` over SQL. */
export class SqlRunState extends SqlTrainerReader {
  /** The data directory that writes, where several share the catalogue. */
  protected readonly home: Id | null
  protected readonly leases: LeaseWatch
  readonly #lengths = new Map<Id, KeptLengths>()

  constructor(sql: Sql, home: Id | null, leases: LeaseWatch) {
    super(sql)
    this.home = home
    this.leases = leases
  }

  async passedGate(run: Id, policy: string | null = null): Promise<boolean> {
    const { text, values } = ofPolicy(policy)
    const told = `SELECT 1 FROM run_events WHERE run = ? AND kind = 'gate_passed' ${text} LIMIT 1`
    return (await first(this.sql, told, run, ...values)) !== undefined
  }

  async lastSettled(run: Id, limit: number): Promise<readonly SettledRound['state'][]> {
    const told = await this.#sinceAttach<Pick<SettledRound, 'state'>>(run, 'group_settled', limit)
    return told.map(({ state }) => state)
  }

  async feedStop(run: Id): Promise<FeedStop | null> {
    const [last] = await this.#sinceAttach<FeedStop>(run, 'feed_stopped', 1)
    return last === undefined ? null : { reason: last.reason, message: last.message }
  }

  /** What was told since a trainer attached, the newest first. */
  async #sinceAttach<Data>(run: Id, kind: RunEvent['kind'], limit: number): Promise<readonly Data[]> {
    const rows = await wholeRows<{ data: string }>(
      this.sql,
      catalogueTables.runEvents,
      `WHERE run = ? AND kind = ? AND seq > coalesce((SELECT max(seq) FROM run_events WHERE run = ? AND kind = 'attached'), 0)
       ORDER BY seq DESC LIMIT ?`,
      run,
      kind,
      run,
      limit,
    )
    // Only `tell` of this kind writes it.
    return rows.map(({ data }) => JSON.parse(data) as Data)
  }

  async lastPolicy(runId: Id, policy: string | null = null): Promise<PolicyEvent | null> {
    const { text, values } = ofPolicy(policy)
    const [row] = await wholeRows<{ seq: number; kind: PolicyEventKind; at: number; data: string }>(
      this.sql,
      catalogueTables.runEvents,
      `WHERE run = ? AND ${this.sql.dialect.isPolicyEvent} AND kind <> 'policy_engines' ${text} ORDER BY seq DESC LIMIT 1`,
      runId,
      ...values,
    )
    if (row === undefined) return null
    const { seq, kind, at, data } = row
    return { seq, runId, kind, at, data: JSON.parse(data) as RunEvent['data'] }
  }

  async adapters(runId: Id): Promise<readonly (NamedAdapter & { readonly label: string })[]> {
    const rows = await wholeRows<{ data: string }>(
      this.sql,
      catalogueTables.runEvents,
      `WHERE run = ? AND ${this.sql.dialect.isPolicyEvent} AND kind = 'policy_live' ORDER BY seq`,
      runId,
    )
    return rows.flatMap(({ data }) => {
      // Only `announce` writes it.
      const { label, adapter } = JSON.parse(data) as { label: string; adapter?: NamedAdapter }
      return adapter === undefined ? [] : [{ label, ...adapter }]
    })
  }

  async policyOwner(): Promise<Id | null> {
    return (await this.#lastHere(''))?.run ?? null
  }

  async engines(): Promise<NamedEngines | null> {
    const row = await this.#lastHere(`AND kind = 'policy_engines'`)
    if (row === null) return null
    // Only `tell` of this kind writes it.
    const { engines, identity } = JSON.parse(row.data) as Pick<NamedEngines, 'engines' | 'identity'>
    return { runId: row.run, engines, identity }
  }

  /** The last event of weights in an open run of this data directory. */
  async #lastHere(more: string): Promise<{ readonly run: Id; readonly data: string } | null> {
    const here = this.home === null ? '' : 'AND run IN (SELECT run FROM run_homes WHERE home = ?)'
    const [row] = await wholeRows<{ run: Id; data: string }>(
      this.sql,
      catalogueTables.runEvents,
      `WHERE ${this.sql.dialect.isPolicyEvent} ${more} AND run NOT IN (SELECT run FROM closed_runs) ${here}
       ORDER BY seq DESC LIMIT 1`,
      ...(this.home === null ? [] : [this.home]),
    )
    return row ?? null
  }

  async incarnation(run: Id): Promise<number | null> {
    const found = await first<{ last: number | null }>(
      this.sql,
      'SELECT max(incarnation) AS last FROM trainer_incarnations WHERE run = ?',
      run,
    )
    return found?.last ?? null
  }

  async counts(run: Id, policy: string | null = null): Promise<HandoutCounts> {
    // Of all policies a round stands where the hand-out stands that has come least far.
    const standing =
      policy === null
        ? `NOT EXISTS (SELECT 1 FROM handouts o WHERE o."group" = h."group" AND o.round = h.round
             AND (${rank('o')} < ${rank('h')} OR (${rank('o')} = ${rank('h')} AND o.n < h.n)))`
        : 'policy = ?'
    const rows = await this.sql.all<{ state: string; count: number }>(
      `SELECT state, count(*) AS count FROM handouts h WHERE run = ? AND ${standing} GROUP BY state`,
      run,
      ...(policy === null ? [] : [policy]),
    )
    const of = (state: string): number => rows.find((row) => row.state === state)?.count ?? 0
    const opened = await first<{ count: number }>(
      this.sql,
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

  async openRounds(
    run: Id,
    policy: string | null = null,
  ): Promise<readonly { readonly groupId: Id; readonly round: number }[]> {
    // Of all policies: until the last of them is over.
    const isOver =
      policy === null
        ? `EXISTS (SELECT 1 FROM handouts o WHERE ${ofRound}) AND NOT EXISTS (SELECT 1 FROM handouts o WHERE ${ofRound} AND NOT ${over})`
        : `EXISTS (SELECT 1 FROM handouts o WHERE ${ofRound} AND ${over} AND o.policy = ?)`
    return this.sql.all<{ groupId: Id; round: number }>(
      `SELECT r."group" AS "groupId", r.round FROM group_rounds r JOIN groups g ON g.id = r."group"
       WHERE g.run = ? AND NOT (${isOver}) ORDER BY g.n, r.round`,
      run,
      ...(policy === null ? [] : [policy]),
    )
  }

  async staleGroups(run: Id): Promise<readonly Id[]> {
    const rows = await this.sql.all<{ id: Id }>(
      `SELECT DISTINCT "group" AS id FROM handouts WHERE run = ? AND state = 'stale'`,
      run,
    )
    return rows.map(({ id }) => id)
  }

  async settleOrder(group: Id, round: number): Promise<number | null> {
    const [found] = await this.sql.all<{ n: number | null }>(
      'SELECT min(n) AS n FROM handouts WHERE "group" = ? AND round = ?',
      group,
      round,
    )
    return found?.n ?? null
  }

  async carryingGroups(run: Id): Promise<readonly Id[]> {
    const last = await this.sql.all<{ id: Id; record: string }>(
      `SELECT g.id, s.record FROM groups g JOIN settled_rounds s ON s."group" = g.id
       WHERE g.run = ? AND NOT EXISTS
         (SELECT 1 FROM group_rounds r WHERE r."group" = g.id AND r.round > s.round) ORDER BY g.n`,
      run,
    )
    return last.filter(({ record }) => parseSettled(record).carried.members > 0).map(({ id }) => id)
  }

  lengths(run: Id): Promise<RunLengths> {
    const kept = this.#lengths.get(run) ?? new KeptLengths(this.sql, this, run)
    this.#lengths.delete(run)
    this.#lengths.set(run, kept)
    for (const oldest of this.#lengths.keys()) {
      if (this.#lengths.size <= keptLengths) break
      this.#lengths.delete(oldest)
    }
    return kept.read()
  }

  async isClosed(run: Id): Promise<boolean> {
    return (await wholeRows(this.sql, catalogueTables.closedRuns, 'WHERE run = ?', run)).length > 0
  }

  async nextExpiry(run: Id): Promise<number | null> {
    const held = await this.sql.all<Lease>(
      `SELECT claim, lease_ms, renewals FROM handouts WHERE run = ? AND state = 'claimed'`,
      run,
    )
    return held.length === 0 ? null : Math.min(...held.map((lease) => this.leases.leftMs(lease)))
  }
}
