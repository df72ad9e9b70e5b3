import type { Database } from 'better-sqlite3'
import {
  type Digest,
  type EngineFingerprint,
  type Id,
  PaddockError,
  type RolloutEnd,
  type Task,
  type Verdict,
} from '../../core/index.ts'
import type {
  GroupRecord,
  RolloutRecord,
  RolloutWork,
  RoundRecord,
  RunEvent,
  RunRecord,
  SettledRound,
  SlotRecord,
} from '../contract/index.ts'
import { SqliteCatalogueReader } from './catalogue-reader.ts'
import { type ColumnValue, insertOf, rowDigest } from '../sqlite/index.ts'
import { fingerprintDigest } from './fingerprint.ts'
import { catalogueTables, type CoveredTable } from './schema.ts'

const { ends, fingerprints, groups, labels, rollouts, runs, starts, taints, tasks, tokenTexts } = catalogueTables
const verdictsTable = catalogueTables.verdicts
const { rounds: roundsTable, runEvents: runEventsTable, settled: settledTable, slots: slotsTable } = catalogueTables
const orNothing = 'ON CONFLICT DO NOTHING'

/**
 * The synchronous half of `Catalogue`: each write is a transaction of its own. Putting what is there already is
 * nothing; putting something else under the same id throws `STORE_CONFLICT`.
 */
export class SqliteCatalogue extends SqliteCatalogueReader {
  readonly #db: Database

  constructor(db: Database) {
    super(db)
    this.#db = db
  }

  /** The source is where a task was seen first: it is not part of its identity. */
  putTask(task: Task): void {
    this.#insert(tasks, { task: task.digest, record: JSON.stringify(task) }, orNothing)
  }

  putRun(run: RunRecord): void {
    this.#put('runs', run.id, run, (record) => this.#insert(runs, { id: run.id, record }))
  }

  putGroup(group: GroupRecord): void {
    const { id, runId: run, taskDigest: task } = group
    this.#put('groups', id, group, (record) => this.#insert(groups, { id, run, task, record }))
  }

  putRollout(rollout: RolloutRecord): void {
    const { id, runId: run, groupId: group, slot, attempt } = rollout
    this.#put('rollouts', id, rollout, (record) => this.#insert(rollouts, { id, run, group, slot, attempt, record }))
  }

  startRollout(id: Id, at: number): void {
    this.#once(id, () => {
      const { startedAt } = this.rollout(id)
      if (startedAt !== null) return startedAt === at
      this.#insert(starts, { rollout: id, at })
      return true
    })
  }

  putWork(id: Id, work: RolloutWork): void {
    this.#once(id, () => {
      const known = this.rollout(id)
      if (known.work !== null) return JSON.stringify(known.work) === JSON.stringify(work)
      if (known.end !== null) return false
      this.#insert(catalogueTables.works, { rollout: id, record: JSON.stringify(work) })
      return true
    })
  }

  endRollout(id: Id, at: number, end: RolloutEnd, detail: string): void {
    this.#once(id, () => {
      const known = this.rollout(id)
      if (known.end !== null) return known.end === end && known.endDetail === detail && known.endedAt === at
      this.#insert(ends, { rollout: id, at, end, detail })
      return true
    })
  }

  taint(rolloutId: Id, cause: string): void {
    this.#known(rolloutId)
    this.#insert(taints, { rollout: rolloutId, cause }, orNothing)
  }

  label(rolloutId: Id, name: string, value: string): void {
    this.#known(rolloutId)
    this.#insert(labels, { rollout: rolloutId, name, value })
  }

  appendVerdict(verdict: Verdict): void {
    this.#put('verdicts', verdict.id, verdict, (record) => {
      const { verdicts } = this.rollout(verdict.rolloutId)
      if (verdict.supersedes !== null && !verdicts.some((earlier) => earlier.id === verdict.supersedes)) {
        throw new PaddockError('STORE_CONFLICT', `verdict ${verdict.id} supersedes one that the rollout does not have`)
      }
      this.#insert(verdictsTable, { id: verdict.id, rollout: verdict.rolloutId, record })
      this.#tellLate(verdict)
    })
  }

  openRound(round: RoundRecord): void {
    this.#transaction(() => {
      const known = this.rounds(round.groupId)
      if (known.some((one) => one.round === round.round)) return
      if (known.length !== round.round || known.some(({ settled }) => settled === null)) {
        const what = `round ${round.round} of group ${round.groupId} cannot open: it has ${known.length}, and each must settle first`
        throw new PaddockError('ROUND_OPEN', what)
      }
      this.#insert(roundsTable, {
        group: round.groupId,
        round: round.round,
        record: JSON.stringify(round),
        opened_at: this.databaseNow(),
      })
      this.tell(round.runId, 'group_opened', { groupId: round.groupId, round: round.round, n: round.spec.n })
    })
  }

  openSlots(groupId: Id, asked: readonly { readonly jobId: Id; readonly key: string | null }[]): readonly SlotRecord[] {
    return this.#transaction(() => {
      const rounds = this.rounds(groupId)
      const known = rounds.flatMap(({ round, slots }) => slots.filter((one) => one.round === round))
      const open = rounds.find(({ settled }) => settled === null)
      return asked.map(({ jobId, key }) => {
        const before = known.find((one) => one.jobId === jobId || (key !== null && one.key === key))
        if (before !== undefined) return before
        if (open === undefined) {
          throw new PaddockError('ROUND_SETTLED', `no round of group ${groupId} goes on, so it takes no new member`)
        }
        const slot: SlotRecord = { slot: known.length, round: open.round, jobId, key }
        this.#insert(slotsTable, { group: groupId, slot: slot.slot, round: slot.round, job: jobId, key })
        known.push(slot)
        return slot
      })
    })
  }

  settleRound(settled: SettledRound): SettledRound {
    return this.#transaction(() => {
      const { groupId, runId, round, state, usable, members } = settled
      const known = this.rounds(groupId).find((one) => one.round === round)
      if (known === undefined) throw new PaddockError('NOT_FOUND', `group ${groupId} has no round ${round}`)
      if (known.settled !== null) return known.settled
      const record = JSON.stringify(settled)
      this.#insert(settledTable, { group: groupId, round, record, at: this.databaseNow() })
      this.tell(runId, 'group_settled', { groupId, round, state, usable, members: members.length })
      return settled
    })
  }

  putFingerprint(fingerprint: EngineFingerprint): Digest {
    const digest = fingerprintDigest(fingerprint)
    this.#insert(fingerprints, { id: digest, record: JSON.stringify(fingerprint) }, orNothing)
    return digest
  }

  putTokenTexts(tokenizer: string, texts: ReadonlyMap<number, Uint8Array>): void {
    this.#db.transaction(() => {
      for (const [token, bytes] of texts) {
        this.#insert(tokenTexts, { tokenizer, token, bytes }, orNothing)
      }
    })()
  }

  #tellLate({ id: verdictId, rolloutId, status, reward }: Verdict): void {
    const { groupId, runId } = this.rollout(rolloutId)
    const round = this.rounds(groupId).find(({ settled }) =>
      settled?.members.some((member) => member.rolloutId === rolloutId),
    )
    if (round === undefined) return
    this.tell(runId, 'verdict_late', { groupId, round: round.round, rolloutId, verdictId, status, reward })
  }

  /** Writes what happened in a run, for whoever follows it. */
  tell(runId: Id, kind: RunEvent['kind'], data: RunEvent['data']): void {
    const seq = this.statements.get<{ next: number }>('SELECT coalesce(max(seq), 0) + 1 AS next FROM run_events')?.next
    const row = { seq: seq ?? 1, run: runId, kind, at: this.databaseNow(), data: JSON.stringify(data) }
    this.#insert(runEventsTable, row)
  }

  #transaction<T>(work: () => T): T {
    return this.#db.transaction(work).immediate()
  }

  /** A row with its digest; `conflict` says what happens where the row is there already. */
  #insert<Column extends string>(
    table: CoveredTable<Column>,
    row: Readonly<Record<Column, ColumnValue>>,
    conflict = '',
  ): void {
    const values = table.columns.map((column) => row[column])
    this.statements.run(insertOf(table, [], conflict), ...values, rowDigest(values))
  }

  #put(
    table: 'runs' | 'groups' | 'rollouts' | 'verdicts',
    id: Id,
    record: unknown,
    insert: (record: string) => void,
  ): void {
    const text = JSON.stringify(record)
    this.#db
      .transaction(() => {
        const known = this.statements.get<{ record: string }>(`SELECT record FROM ${table} WHERE id = ?`, id)
        if (known === undefined) insert(text)
        else if (known.record !== text) {
          throw new PaddockError('STORE_CONFLICT', `another record stands under ${id} in ${table}`)
        }
      })
      .immediate()
  }

  #once(id: Id, write: () => boolean): void {
    this.#db
      .transaction(() => {
        if (!write()) throw new PaddockError('STORE_CONFLICT', `rollout ${id} has started or ended otherwise`)
      })
      .immediate()
  }

  #known(id: Id): void {
    if (this.statements.get('SELECT 1 FROM rollouts WHERE id = ?', id) === undefined) {
      throw new PaddockError('NOT_FOUND', `there is no rollout ${id}`)
    }
  }
}
