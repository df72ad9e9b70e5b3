import { type Id, PaddockError } from '../../../core/index.ts'
import { SqlCatalogue } from '../../catalogue/index.ts'
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
  Queue,
  Swept,
} from '../../contract/index.ts'
import { type Connection, Database, type DatabaseOptions, PostgresTransaction } from '../../postgres/index.ts'
import { fitting, inOrder } from '../pick.ts'
import { keep } from '../keep.ts'

/** The moment of the statement, not of its transaction, which may have waited for a lock. */
const now = 'clock_timestamp()'
const after = (parameter: string): string => `${now} + ${parameter}::float8 * interval '1 millisecond'`

/** `n` is exact below 2^53; `needs` is JSON. */
const columns = `n::float8 AS n, id, topic, run, "group", payload, needs::text AS needs, priority, state, token, attempt,
  session, cancel_asked`

interface JobRow {
  readonly n: number
  readonly id: Id
  readonly topic: string
  readonly run: Id | null
  readonly group: Id | null
  readonly payload: string
  readonly needs: string
  readonly priority: number
  readonly state: JobState
  readonly token: number
  readonly attempt: number
  readonly session: Id | null
  readonly cancel_asked: boolean
}

type Candidate = Pick<JobRow, 'n' | 'priority' | 'needs'>

/** Where a job goes that is not done: nowhere when somebody wants it stopped or its attempts are used up. */
const backAgain = `CASE WHEN cancel_asked THEN 'cancelled' WHEN attempt >= max_attempts THEN 'dead' ELSE 'ready' END`

/** Rows are locked in one order wherever several are waited for; a claim waits for none. */
const locked = (where: string): string =>
  `WITH mine AS MATERIALIZED (SELECT n FROM paddock.jobs WHERE ${where} ORDER BY n FOR UPDATE)`

/** The queue in PostgreSQL: several processes on several machines share it. Each method is one transaction. */
export class PostgresQueue implements Queue {
  readonly #db: Database

  private constructor(db: Database) {
    this.#db = db
  }

  /** See `openPostgresQueue`. */
  static async open(
    options: Pick<DatabaseOptions, 'url' | 'connections' | 'patienceMs' | 'guard'>,
  ): Promise<PostgresQueue> {
    return new PostgresQueue(await Database.open({ ...options, unavailable: 'QUEUE_UNAVAILABLE', migrates: true }))
  }

  async session(id: Id): Promise<NodeSessionView | null> {
    const [row] = await this.#db.query<Pick<NodeSessionView, 'name' | 'state'> & { readonly labels: string }>(
      'SELECT name, state, labels::text AS labels FROM paddock.node_sessions WHERE id = $1',
      [id],
    )
    // Written by join.
    return row === undefined ? null : { ...row, id, labels: JSON.parse(row.labels) as string[] }
  }

  async join(node: NodeSession, ttlMs: number): Promise<void> {
    await this.#db.query(
      `INSERT INTO paddock.node_sessions (id, name, labels, state, expires_at)
       VALUES ($1, $2, $3, 'up', ${after('$4')}) ON CONFLICT (id) DO NOTHING`,
      [node.id, node.name, JSON.stringify(node.labels), ttlMs],
    )
    const over = await this.#db.query(`SELECT 1 FROM paddock.node_sessions WHERE id = $1 AND state = 'gone'`, [node.id])
    if (over.length > 0) throw gone(node.id)
  }

  async beat(session: Id, ttlMs: number): Promise<{ readonly alive: boolean; readonly cancel: readonly Id[] }> {
    const kept = await this.#db.query(
      `UPDATE paddock.node_sessions SET expires_at = ${after('$2')} WHERE id = $1 AND state <> 'gone' RETURNING id`,
      [session, ttlMs],
    )
    const asked = await this.#db.query<{ id: Id }>(
      `SELECT id FROM paddock.jobs WHERE session = $1 AND state = 'leased' AND cancel_asked ORDER BY n`,
      [session],
    )
    return { alive: kept.length > 0, cancel: asked.map(({ id }) => id) }
  }

  async drain(session: Id): Promise<void> {
    await this.#db.query(`UPDATE paddock.node_sessions SET state = 'draining' WHERE id = $1 AND state = 'up'`, [
      session,
    ])
  }

  async leave(session: Id): Promise<void> {
    await this.#db.transaction(async (db) => {
      await db.query(`UPDATE paddock.node_sessions SET state = 'gone' WHERE id = $1`, [session])
      await db.query(
        `${locked(`session = $1 AND state <> 'done'`)}
         UPDATE paddock.jobs j SET session = NULL,
           attempt = CASE state WHEN 'leased' THEN attempt - 1 ELSE attempt END,
           state = CASE WHEN state <> 'leased' THEN state WHEN cancel_asked THEN 'cancelled' ELSE 'ready' END
         FROM mine WHERE j.n = mine.n`,
        [session],
      )
    })
  }

  async holders(): Promise<readonly NodeSessionView[]> {
    const rows = await this.#db.query<Omit<NodeSessionView, 'labels'> & { readonly labels: string }>(
      `SELECT id, name, state, labels::text AS labels FROM paddock.node_sessions
       WHERE id IN (SELECT session FROM paddock.jobs WHERE session IS NOT NULL AND state <> 'done') ORDER BY id`,
    )
    // Written by join.
    return rows.map((row) => ({ ...row, labels: JSON.parse(row.labels) as string[] }))
  }

  async retire(nodeName: string): Promise<Swept> {
    return this.#db.transaction(async (db) => {
      await db.query(
        `WITH mine AS MATERIALIZED
           (SELECT id FROM paddock.node_sessions WHERE name = $1 AND state <> 'gone' ORDER BY id FOR UPDATE)
         UPDATE paddock.node_sessions s SET expires_at = '-infinity' FROM mine WHERE s.id = mine.id`,
        [nodeName],
      )
      return sweepIn(db)
    })
  }

  async enqueue(topic: string, jobs: readonly NewJob[]): Promise<void> {
    const rows = jobs.map((job) => ({
      id: job.id,
      run: job.runId ?? null,
      group: job.groupId ?? null,
      payload: JSON.stringify(job.payload ?? null),
      needs: { labels: job.needs?.labels ?? [], capacity: job.needs?.capacity ?? {} },
      max_attempts: job.maxAttempts ?? null,
      priority: job.priority ?? 0,
    }))
    // `started` only says who goes first: a claim that is just being committed may be missed. `LIMIT` keeps PostgreSQL from
    // reading all jobs for it.
    await this.#db.query(
      `INSERT INTO paddock.jobs (id, topic, run, "group", payload, needs, max_attempts, priority, started)
       SELECT id, $1, run, "group", payload, needs, max_attempts, priority,
         coalesce((SELECT true FROM paddock.jobs j WHERE j."group" = new."group" AND j.started LIMIT 1), false)
       FROM ROWS FROM (json_to_recordset($2::json) AS (id text, run text, "group" text, payload text, needs jsonb,
         max_attempts integer, priority float8)) WITH ORDINALITY AS new
           (id, run, "group", payload, needs, max_attempts, priority, at)
       ORDER BY at ON CONFLICT (id) DO NOTHING`,
      [topic, JSON.stringify(rows)],
    )
  }

  async claim(topic: string, session: Id, request: ClaimRequest): Promise<readonly Lease[]> {
    return this.#db.transaction(async (db) => {
      // Claims of one session come one after the other, and a sweep leaves it alone meanwhile.
      const [node] = await db.query<{ state: string; labels: readonly string[] }>(
        'SELECT state, labels FROM paddock.node_sessions WHERE id = $1 FOR UPDATE',
        [session],
      )
      if (node?.state !== 'up') throw gone(session)
      const held = await db.query<JobRow & { request: Id }>(
        `SELECT ${columns}, request FROM paddock.jobs WHERE session = $1 AND state = 'leased' ORDER BY priority DESC, n`,
        [session],
      )
      const before = held.filter((job) => job.request === request.requestId && job.topic === topic)
      if (before.length > 0) return before.map(leaseOf)
      const groups = [...new Set(held.flatMap(({ group }) => (group === null ? [] : [group])))]
      const chosen = await choose(db, topic, { labels: node.labels, groups }, request)
      if (chosen.length === 0) return []
      const leased = await db.query<JobRow>(
        `UPDATE paddock.jobs SET state = 'leased', session = $1, request = $2, token = token + 1, attempt = attempt + 1
         WHERE n = ANY ($3::bigint[]) RETURNING ${columns}`,
        [session, request.requestId, chosen],
      )
      const begun = [...new Set(leased.flatMap(({ group }) => (group === null ? [] : [group])))]
      if (begun.length > 0) {
        // Rows that others hold are just being claimed, or keep their place until the next claim of the group.
        await db.query(
          `UPDATE paddock.jobs SET started = true WHERE n IN
             (SELECT n FROM paddock.jobs WHERE "group" = ANY ($1::text[]) AND NOT started FOR UPDATE SKIP LOCKED)`,
          [begun],
        )
      }
      const place = new Map(chosen.map((n, at) => [n, at]))
      return leased.toSorted((a, b) => (place.get(a.n) ?? 0) - (place.get(b.n) ?? 0)).map(leaseOf)
    })
  }

  async handIn(lease: LeaseKey, what: HandIn): Promise<HandInAnswer> {
    return this.#db.transaction(async (db): Promise<HandInAnswer> => {
      // Two statements: what another hand-in committed while this one waited for the row is seen by the second only.
      const [job] = await db.query<{ n: number; state: JobState; token: number; session: Id | null }>(
        'SELECT n::float8 AS n, state, token, session FROM paddock.jobs WHERE id = $1 FOR UPDATE',
        [lease.jobId],
      )
      if (job === undefined) return { accepted: false, why: 'unknown_job' }
      const [earlier] = await db.query<{ session: Id; digest: string }>(
        'SELECT session, digest FROM paddock.hand_ins WHERE job = $1 AND token = $2',
        [job.n, lease.token],
      )
      if (earlier !== undefined && earlier.session === lease.session) {
        if (earlier.digest !== what.digest) return { accepted: false, why: 'differs' }
        return { accepted: true, repeated: true, state: job.state }
      }
      if (job.token !== lease.token || job.session !== lease.session) return { accepted: false, why: 'not_yours' }
      if (what.made !== null) await keep(new SqlCatalogue(new PostgresTransaction(db)), what.made)
      const change =
        what.next === 'done' ? `state = 'done'` : `state = ${backAgain}, session = NULL, available_at = ${now}`
      const [row] = await db.query<{ state: JobState }>(
        `WITH accepted AS (INSERT INTO paddock.hand_ins (job, token, session, digest) VALUES ($1, $2, $3, $4))
         UPDATE paddock.jobs SET ${change} WHERE n = $1 RETURNING state`,
        [job.n, lease.token, lease.session, what.digest],
      )
      return { accepted: true, repeated: false, state: row?.state ?? job.state }
    })
  }

  async giveBack(lease: LeaseKey, why: 'drain' | 'failure', delayMs = 0): Promise<boolean> {
    const state = why === 'drain' ? `CASE WHEN cancel_asked THEN 'cancelled' ELSE 'ready' END` : backAgain
    const rows = await this.#db.query(
      `UPDATE paddock.jobs SET session = NULL, available_at = ${after('$4')}, state = ${state},
         attempt = attempt - ${why === 'drain' ? 1 : 0}
       WHERE id = $1 AND token = $2 AND session = $3 AND state IN ('leased', 'ready') RETURNING id`,
      [lease.jobId, lease.token, lease.session, delayMs],
    )
    return rows.length > 0
  }

  async cancel(filter: JobFilter): Promise<{ readonly cancelled: number; readonly asked: number }> {
    const { where, values } = conditionsOf(filter)
    const rows = await this.#db.query<{ state: JobState }>(
      `${locked(`${where} AND state IN ('ready', 'leased') AND NOT cancel_asked`)}
       UPDATE paddock.jobs j SET cancel_asked = true, state = CASE state WHEN 'ready' THEN 'cancelled' ELSE state END
       FROM mine WHERE j.n = mine.n RETURNING j.state`,
      values,
    )
    const cancelled = rows.filter(({ state }) => state === 'cancelled').length
    return { cancelled, asked: rows.length - cancelled }
  }

  async sweep(): Promise<Swept> {
    return this.#db.transaction(sweepIn)
  }

  async jobs(filter: JobFilter): Promise<readonly JobView[]> {
    const { where, values } = conditionsOf(filter)
    const rows = await this.#db.query<JobRow>(
      `SELECT ${columns} FROM paddock.jobs j WHERE ${where} ORDER BY j.n`,
      values,
    )
    return rows.map(viewOf)
  }

  async depth(topic: string): Promise<Readonly<Record<JobState, number>>> {
    const counts = { ready: 0, leased: 0, done: 0, dead: 0, cancelled: 0 }
    const rows = await this.#db.query<{ state: JobState; many: number }>(
      'SELECT state, count(*)::float8 AS many FROM paddock.jobs WHERE topic = $1 GROUP BY state',
      [topic],
    )
    for (const { state, many } of rows) counts[state] = many
    return counts
  }

  close(): Promise<void> {
    return this.#db.close()
  }
}

/**
 * Locks the ready jobs that a node takes, its own groups' first. Jobs that another claim holds at this moment are passed
 * over. What was locked and does not fit is free again when the claim ends.
 */
async function choose(
  db: Connection,
  topic: string,
  node: { readonly labels: readonly string[]; readonly groups: readonly Id[] },
  { limit, capacity }: ClaimRequest,
): Promise<readonly number[]> {
  const labels: ReadonlySet<string> = new Set(node.labels)
  const free = new Map(Object.entries(capacity))
  const chosen: Candidate[] = []
  const seen: number[] = []
  for (let left = limit; left > 0; left = limit - chosen.length) {
    // In the order of the index `jobs_ready`, with `j.n` and not the number that is read: nothing is sorted.
    const read = async (more: string, values: readonly unknown[]): Promise<readonly Candidate[]> => {
      const rows = await db.query<Candidate>(
        `SELECT n::float8 AS n, priority, needs::text AS needs FROM paddock.jobs j
         WHERE state = 'ready' AND topic = $1 AND available_at <= ${now} AND n <> ALL ($2::bigint[])
           AND needs -> 'labels' <@ $3::jsonb
           AND NOT EXISTS (SELECT 1 FROM jsonb_each_text(needs -> 'capacity') AS need (name, amount)
             WHERE amount::float8 > coalesce(($4::jsonb ->> name)::float8, 0)) ${more}
         ORDER BY priority DESC, started DESC, j.n LIMIT $5 FOR UPDATE SKIP LOCKED`,
        [topic, seen, JSON.stringify(node.labels), JSON.stringify(Object.fromEntries(free)), left, ...values],
      )
      seen.push(...rows.map(({ n }) => n))
      return rows
    }
    const own = node.groups.length === 0 ? [] : await read('AND "group" = ANY ($6::text[])', [node.groups])
    // Others come before them only with a higher priority, unless there are too few.
    const least = own.length < left ? -Infinity : (own.at(-1)?.priority ?? -Infinity)
    const all = await read('AND priority > $6', [least])
    const fit = fitting(inOrder(own, all), { labels, capacity: Object.fromEntries(free), limit: left })
    for (const { needs } of fit) {
      for (const [name, amount] of Object.entries(parse<JobNeeds>(needs).capacity)) {
        free.set(name, (free.get(name) ?? 0) - amount)
      }
    }
    chosen.push(...fit)
    if (own.length < left && all.length < left) break
  }
  return chosen.map(({ n }) => n)
}

/** A session that is just being kept or claims is left to the next sweep. */
async function sweepIn(db: Connection): Promise<Swept> {
  const lost = await db.query<{ id: Id }>(
    `WITH lost AS MATERIALIZED (SELECT id FROM paddock.node_sessions
       WHERE state <> 'gone' AND expires_at <= ${now} ORDER BY id FOR UPDATE SKIP LOCKED)
     UPDATE paddock.node_sessions s SET state = 'gone' FROM lost WHERE s.id = lost.id RETURNING s.id`,
    [],
  )
  const sessions = lost.map(({ id }) => id)
  const count = { ready: 0, dead: 0, cancelled: 0 }
  if (sessions.length === 0) return { sessions, ...count }
  // Token and session stand: a hand-in that is late is accepted as long as nobody claimed.
  const rows = await db.query<{ state: 'ready' | 'dead' | 'cancelled' }>(
    `${locked(`session = ANY ($1::text[]) AND state = 'leased'`)}
     UPDATE paddock.jobs j SET state = ${backAgain}, available_at = ${now} FROM mine WHERE j.n = mine.n RETURNING j.state`,
    [sessions],
  )
  for (const { state } of rows) count[state] += 1
  return { sessions, ...count }
}

function conditionsOf({ ids, runId, groupId }: JobFilter): { readonly where: string; readonly values: unknown[] } {
  const conditions = ['true']
  const values: unknown[] = []
  const add = (condition: (parameter: string) => string, value: unknown): void => {
    values.push(value)
    conditions.push(condition(`$${values.length}`))
  }
  if (ids !== undefined) add((parameter) => `id = ANY (${parameter}::text[])`, ids)
  if (runId !== undefined) add((parameter) => `run = ${parameter}`, runId)
  if (groupId !== undefined) add((parameter) => `"group" = ${parameter}`, groupId)
  return { where: conditions.join(' AND '), values }
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
    cancelAsked: row.cancel_asked,
  }
}

function gone(session: Id): PaddockError {
  return new PaddockError('NODE_SESSION_GONE', `The node session ${session} takes no jobs: it is over or unknown`)
}

/** JSON that only this folder writes. */
function parse<T>(text: string): T {
  return JSON.parse(text) as T
}
