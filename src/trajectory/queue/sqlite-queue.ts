import type { Database } from 'better-sqlite3'
import { type Id, PaddockError } from '../../core/index.ts'
import { SqlCatalogue } from '../catalogue/index.ts'
import type {
  ClaimRequest,
  HandIn,
  HandInAnswer,
  JobFilter,
  JobNeeds,
  JobState,
  JobView,
  Lease,
  LeaseKey,
  NewJob,
  NodeSession,
  NodeSessionView,
  Swept,
} from '../contract/index.ts'
import { type Sql, SqliteSql } from '../sql/index.ts'
import { Statements } from '../sqlite/index.ts'
import { keep } from './keep.ts'
import { fitting, inOrder } from './pick.ts'

/** The database's own clock, milliseconds since the epoch. */
const now = `(unixepoch('subsec') * 1000.0)`

/** A row of `jobs`. */
export interface JobRow {
  readonly n: number
  readonly id: Id
  readonly topic: string
  readonly run: Id | null
  readonly group: Id | null
  readonly payload: string
  readonly needs: string
  readonly max_attempts: number | null
  readonly priority: number
  readonly started: number
  readonly state: JobState
  readonly token: number
  readonly attempt: number
  readonly session: Id | null
  readonly cancel_asked: number
}

/** Where a job goes that is not done: nowhere when somebody wants it stopped or its attempts are used up. */
const backAgain = `CASE WHEN cancel_asked = 1 THEN 'cancelled' WHEN attempt >= max_attempts THEN 'dead' ELSE 'ready' END`

/** `Queue` over SQLite, served one call after the other. Each method is one transaction. */
export class SqliteQueue {
  readonly #db: Database
  readonly #sql: Sql
  readonly #statements: Statements

  constructor(db: Database) {
    this.#db = db
    this.#sql = new SqliteSql(db)
    this.#statements = new Statements(db)
  }

  session(id: Id): NodeSessionView | null {
    const row = this.#session(id)
    return row === undefined ? null : { id, name: row.name, labels: parse<string[]>(row.labels), state: row.state }
  }

  join(node: NodeSession, ttlMs: number): void {
    this.#statements.run(
      `INSERT INTO node_sessions (id, name, labels, state, expires_at) VALUES (?, ?, ?, 'up', ${now} + ?)
       ON CONFLICT (id) DO NOTHING`,
      node.id,
      node.name,
      JSON.stringify(node.labels),
      ttlMs,
    )
    if (this.#session(node.id)?.state === 'gone') throw gone(node.id)
  }

  beat(session: Id, ttlMs: number): { readonly alive: boolean; readonly cancel: readonly Id[] } {
    const row = this.#statements.get(
      `UPDATE node_sessions SET expires_at = ${now} + ? WHERE id = ? AND state <> 'gone' RETURNING n`,
      ttlMs,
      session,
    )
    const asked = this.#statements.all<{ id: Id }>(
      `SELECT id FROM jobs WHERE session = ? AND state = 'leased' AND cancel_asked = 1 ORDER BY n`,
      session,
    )
    return { alive: row !== undefined, cancel: asked.map(({ id }) => id) }
  }

  drain(session: Id): void {
    this.#statements.run(`UPDATE node_sessions SET state = 'draining' WHERE id = ? AND state = 'up'`, session)
  }

  leave(session: Id): void {
    this.#write(() => {
      this.#statements.run(`UPDATE node_sessions SET state = 'gone' WHERE id = ?`, session)
      this.#statements.run(
        `UPDATE jobs SET attempt = attempt - 1,
           state = CASE WHEN cancel_asked = 1 THEN 'cancelled' ELSE 'ready' END
         WHERE session = ? AND state = 'leased'`,
        session,
      )
      this.#statements.run(`UPDATE jobs SET session = NULL WHERE session = ? AND state <> 'done'`, session)
    })
  }

  holders(): readonly NodeSessionView[] {
    const rows = this.#statements.all<{ id: Id; name: string; labels: string; state: NodeSessionView['state'] }>(
      `SELECT id, name, labels, state FROM node_sessions
       WHERE id IN (SELECT session FROM jobs WHERE session IS NOT NULL AND state <> 'done') ORDER BY n`,
    )
    return rows.map((row) => ({ ...row, labels: parse<string[]>(row.labels) }))
  }

  retire(nodeName: string): Swept {
    return this.#write(() => {
      this.#statements.run(`UPDATE node_sessions SET expires_at = 0 WHERE name = ? AND state <> 'gone'`, nodeName)
      return this.sweep()
    })
  }

  enqueue(topic: string, jobs: readonly NewJob[]): void {
    this.#write(() => {
      for (const job of jobs) {
        const { labels = [], capacity = {} } = job.needs ?? {}
        this.#statements.run(
          `INSERT INTO jobs (id, topic, run, "group", payload, needs, max_attempts, priority, started, available_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?,
             EXISTS (SELECT 1 FROM jobs WHERE "group" = ? AND started = 1), ${now})
           ON CONFLICT (id) DO NOTHING`,
          job.id,
          topic,
          job.runId ?? null,
          job.groupId ?? null,
          JSON.stringify(job.payload ?? null),
          JSON.stringify({ labels, capacity }),
          job.maxAttempts ?? null,
          job.priority ?? 0,
          job.groupId ?? null,
        )
      }
    })
  }

  claim(topic: string, session: Id, { requestId, limit, capacity }: ClaimRequest): readonly Lease[] {
    return this.#write(() => {
      const node = this.#session(session)
      if (node === undefined || node.state !== 'up') throw gone(session)
      const before = this.#statements.all<JobRow>(
        `SELECT * FROM jobs WHERE session = ? AND request = ? AND topic = ? AND state = 'leased'
         ORDER BY priority DESC, n`,
        session,
        requestId,
        topic,
      )
      if (before.length > 0) return before.map(leaseOf)
      const labels: ReadonlySet<string> = new Set(parse<string[]>(node.labels))
      const ready = `state = 'ready' AND topic = ? AND available_at <= ${now}`
      const order = 'ORDER BY priority DESC, started DESC, n'
      const own = this.#statements.each<JobRow>(
        // By group, because a walk over all that is ready costs more the more jobs wait.
        `SELECT * FROM jobs INDEXED BY jobs_group WHERE ${ready}
           AND "group" IN (SELECT "group" FROM jobs WHERE session = ? AND state = 'leased') ${order}`,
        topic,
        session,
      )
      const all = this.#statements.each<JobRow>(`SELECT * FROM jobs WHERE ${ready} ${order}`, topic)
      const chosen = fitting(inOrder(own, all), { labels, capacity, limit })
      return chosen.map((row) => this.#lease(row, session, requestId))
    })
  }

  handIn(lease: LeaseKey, what: HandIn): Promise<HandInAnswer> {
    return this.#sql.transaction(async (sql): Promise<HandInAnswer> => {
      const job = this.#statements.get<JobRow>('SELECT * FROM jobs WHERE id = ?', lease.jobId)
      if (job === undefined) return { accepted: false, why: 'unknown_job' }
      const earlier = this.#statements.get<{ session: Id; digest: string }>(
        'SELECT session, digest FROM hand_ins WHERE job = ? AND token = ?',
        job.n,
        lease.token,
      )
      if (earlier !== undefined && earlier.session === lease.session) {
        if (earlier.digest !== what.digest) return { accepted: false, why: 'differs' }
        return { accepted: true, repeated: true, state: job.state }
      }
      if (job.token !== lease.token || job.session !== lease.session) return { accepted: false, why: 'not_yours' }
      this.#statements.run(
        `INSERT INTO hand_ins (job, token, session, digest, at) VALUES (?, ?, ?, ?, ${now})`,
        job.n,
        lease.token,
        lease.session,
        what.digest,
      )
      if (what.made !== null) await keep(new SqlCatalogue(sql), what.made)
      const change =
        what.next === 'done' ? `state = 'done'` : `state = ${backAgain}, session = NULL, available_at = ${now}`
      const row = this.#statements.get<{ state: JobState }>(
        `UPDATE jobs SET ${change} WHERE n = ? RETURNING state`,
        job.n,
      )
      return { accepted: true, repeated: false, state: row?.state ?? job.state }
    })
  }

  giveBack(lease: LeaseKey, why: 'drain' | 'failure', delayMs = 0): boolean {
    const row = this.#statements.get(
      `UPDATE jobs SET session = NULL, available_at = ${now} + ?, attempt = attempt - ?,
         state = CASE WHEN ? = 1 AND cancel_asked = 0 THEN 'ready' ELSE ${backAgain} END
       WHERE id = ? AND token = ? AND session = ? AND state IN ('leased', 'ready') RETURNING n`,
      delayMs,
      why === 'drain' ? 1 : 0,
      why === 'drain' ? 1 : 0,
      lease.jobId,
      lease.token,
      lease.session,
    )
    return row !== undefined
  }

  cancel(filter: JobFilter): { readonly cancelled: number; readonly asked: number } {
    return this.#write(() => {
      const { where, values } = conditionsOf(filter)
      const rows = this.#statements.all<{ state: JobState }>(
        `UPDATE jobs SET cancel_asked = 1, state = CASE state WHEN 'ready' THEN 'cancelled' ELSE state END
         WHERE ${where} AND state IN ('ready', 'leased') AND cancel_asked = 0 RETURNING state`,
        ...values,
      )
      const cancelled = rows.filter(({ state }) => state === 'cancelled').length
      return { cancelled, asked: rows.length - cancelled }
    })
  }

  sweep(): Swept {
    return this.#write(() => {
      const sessions = this.#statements.all<{ id: Id }>(
        `UPDATE node_sessions SET state = 'gone' WHERE state <> 'gone' AND expires_at <= ${now} RETURNING id`,
      )
      const count = { ready: 0, dead: 0, cancelled: 0 }
      for (const { id } of sessions) {
        // Token and session stand: a hand-in that is late is accepted as long as nobody claimed.
        const rows = this.#statements.all<{ state: 'ready' | 'dead' | 'cancelled' }>(
          `UPDATE jobs SET state = ${backAgain}, available_at = ${now} WHERE session = ? AND state = 'leased'
           RETURNING state`,
          id,
        )
        for (const { state } of rows) count[state] += 1
      }
      return { sessions: sessions.map(({ id }) => id), ...count }
    })
  }

  jobs(filter: JobFilter): readonly JobView[] {
    const { where, values } = conditionsOf(filter)
    return this.#statements.all<JobRow>(`SELECT * FROM jobs WHERE ${where} ORDER BY n`, ...values).map(viewOf)
  }

  depth(topic: string): Readonly<Record<JobState, number>> {
    const counts = { ready: 0, leased: 0, done: 0, dead: 0, cancelled: 0 }
    const rows = this.#statements.all<{ state: JobState; many: number }>(
      'SELECT state, count(*) AS many FROM jobs WHERE topic = ? GROUP BY state',
      topic,
    )
    for (const { state, many } of rows) counts[state] = many
    return counts
  }

  #lease(row: JobRow, session: Id, requestId: Id): Lease {
    const leased = this.#statements.get<JobRow>(
      `UPDATE jobs SET state = 'leased', session = ?, request = ?, token = token + 1, attempt = attempt + 1
       WHERE n = ? RETURNING *`,
      session,
      requestId,
      row.n,
    )
    if (row.group !== null) {
      this.#statements.run('UPDATE jobs SET started = 1 WHERE "group" = ? AND started = 0', row.group)
    }
    return leaseOf(leased ?? row)
  }

  #session(
    id: Id,
  ): { readonly state: NodeSessionView['state']; readonly name: string; readonly labels: string } | undefined {
    return this.#statements.get('SELECT state, name, labels FROM node_sessions WHERE id = ?', id)
  }

  #write<T>(work: () => T): T {
    return this.#db.transaction(work).immediate()
  }
}

function leaseOf(row: JobRow): Lease {
  return {
    jobId: row.id,
    topic: row.topic,
    payload: parse(row.payload),
    runId: row.run,
    groupId: row.group,
    needs: parse<JobNeeds>(row.needs),
    session: row.session ?? '',
    token: row.token,
    attempt: row.attempt,
  }
}

function viewOf(row: JobRow): JobView {
  return {
    id: row.id,
    topic: row.topic,
    runId: row.run,
    groupId: row.group,
    payload: parse(row.payload),
    state: row.state,
    token: row.token,
    attempt: row.attempt,
    session: row.session,
    cancelAsked: row.cancel_asked === 1,
  }
}

function conditionsOf({ ids, runId, groupId }: JobFilter): { readonly where: string; readonly values: unknown[] } {
  const conditions = ['1 = 1']
  const values: unknown[] = []
  if (ids !== undefined) {
    conditions.push('id IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(ids))
  }
  if (runId !== undefined) {
    conditions.push('run = ?')
    values.push(runId)
  }
  if (groupId !== undefined) {
    conditions.push('"group" = ?')
    values.push(groupId)
  }
  return { where: conditions.join(' AND '), values }
}

function gone(session: Id): PaddockError {
  return new PaddockError('NODE_SESSION_GONE', `The node session ${session} takes no jobs: it is over or unknown`)
}

/** JSON that only this folder writes. */
function parse<T>(text: string): T {
  return JSON.parse(text) as T
}
