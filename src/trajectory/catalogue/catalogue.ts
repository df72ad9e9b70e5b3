import {
  type Digest,
  type EngineFingerprint,
  type Id,
  PaddockError,
  type RolloutEnd,
  type Task,
  type Verdict,
} from '../../core/index.ts'
import {
  type ArchivedRecord,
  type Catalogue,
  type GroupRecord,
  heldOutSplits,
  isEval,
  type RolloutRecord,
  type RolloutWork,
  type RoundRecord,
  type RoundView,
  type RunEvent,
  type RunRecord,
  type SettledRound,
  type SlotRecord,
  trainedPolicies,
  verdictInForce,
  type VerificationRecord,
} from '../contract/index.ts'
import { rememberReward, rememberRound } from '../memory/index.ts'
import { first, insert } from '../sql/index.ts'
import { SqlCatalogueReader } from './catalogue-reader.ts'
import { requireHere } from './elsewhere.ts'
import { fingerprintDigest } from './fingerprint.ts'
import { catalogueTables, type CoveredTable } from './schema.ts'

const { ends, fingerprints, groups, labels, rollouts, runs, starts, taints, tasks, tokenTexts } = catalogueTables
const verdictsTable = catalogueTables.verdicts
const { rounds: roundsTable, runEvents: runEventsTable, settled: settledTable, slots: slotsTable } = catalogueTables
const orNothing = 'ON CONFLICT DO NOTHING'

/**
 * `Catalogue` over SQL: each write is a transaction of its own, or part of the one that its database is in. Putting what is
 * there already is nothing; putting something else under the same id throws `STORE_CONFLICT`.
 */
export class SqlCatalogue extends SqlCatalogueReader implements Catalogue {
  /** The source is where a task was seen first: it is not part of its identity. */
  async putTask(task: Task): Promise<void> {
    await insert(this.sql, tasks, { task: task.digest, record: JSON.stringify(task) }, orNothing)
  }

  putRun(run: RunRecord): Promise<void> {
    return this.#transaction(async (inside) => {
      await inside.#put(runs, run, (record) => ({ id: run.id, record }))
      if (inside.home === null) return
      await inside.sql.all(`INSERT INTO run_homes (run, home) VALUES (?, ?) ${orNothing}`, run.id, inside.home)
      await requireHere(inside, run.id)
    })
  }

  putGroup(group: GroupRecord): Promise<void> {
    const { id, runId: run, taskDigest: task } = group
    return this.#here(run, (inside) => inside.#put(groups, group, (record) => ({ id, run, task, record })))
  }

  putRollout(rollout: RolloutRecord): Promise<void> {
    const { id, runId: run, groupId: group, slot, attempt } = rollout
    const row = (record: string) => ({ id, run, group, slot, attempt, record })
    return this.#here(run, (inside) => inside.#put(rollouts, rollout, row))
  }

  startRollout(id: Id, at: number): Promise<void> {
    return this.#once(id, async (inside) => {
      const { startedAt } = await inside.rollout(id)
      if (startedAt !== null) return startedAt === at
      await insert(inside.sql, starts, { rollout: id, at })
      return true
    })
  }

  putWork(id: Id, work: RolloutWork): Promise<void> {
    return this.#once(id, async (inside) => {
      const known = await inside.rollout(id)
      if (known.work !== null) return JSON.stringify(known.work) === JSON.stringify(work)
      if (known.end !== null) return false
      await insert(inside.sql, catalogueTables.works, { rollout: id, record: JSON.stringify(work) })
      return true
    })
  }

  endRollout(id: Id, at: number, end: RolloutEnd, detail: string): Promise<void> {
    return this.#once(id, async (inside) => {
      const known = await inside.rollout(id)
      if (known.end !== null) return known.end === end && known.endDetail === detail && known.endedAt === at
      await insert(inside.sql, ends, { rollout: id, at, end, detail })
      return true
    })
  }

  async taint(rolloutId: Id, cause: string): Promise<void> {
    await this.#known(rolloutId)
    await insert(this.sql, taints, { rollout: rolloutId, cause }, orNothing)
  }

  async label(rolloutId: Id, name: string, value: string): Promise<void> {
    await this.#known(rolloutId)
    await insert(this.sql, labels, { rollout: rolloutId, name, value })
  }

  appendVerdict(verdict: Verdict): Promise<void> {
    const { id, rolloutId, supersedes } = verdict
    return this.#transaction(async (inside) => {
      await inside.sql.lock('rollouts', rolloutId)
      const record = JSON.stringify(verdict)
      const known = await first<{ record: string }>(inside.sql, 'SELECT record FROM verdicts WHERE id = ?', id)
      if (known?.record === record) return
      if (known !== undefined) throw conflict('verdicts', id)
      const rollout = await inside.rollout(rolloutId)
      if (supersedes !== null && !rollout.verdicts.some((earlier) => earlier.id === supersedes)) {
        throw new PaddockError('STORE_CONFLICT', `verdict ${id} supersedes one that the rollout does not have`)
      }
      // A round settles either before it, and it is late, or behind it.
      await inside.sql.lock('groups', rollout.groupId)
      await insert(inside.sql, verdictsTable, { id, rollout: rolloutId, record })
      await inside.#tellLate(verdict, rollout)
    })
  }

  openRound(round: RoundRecord): Promise<void> {
    return this.#here(round.runId, async (inside) => {
      await inside.sql.lock('groups', round.groupId)
      const known = await inside.rounds(round.groupId)
      if (known.some((one) => one.round === round.round)) return
      if (known.length !== round.round || known.some(({ settled }) => settled === null)) {
        const what = `round ${round.round} of group ${round.groupId} cannot open: it has ${known.length}, and each must settle first`
        throw new PaddockError('ROUND_OPEN', what)
      }
      await insert(inside.sql, roundsTable, {
        group: round.groupId,
        round: round.round,
        record: JSON.stringify(round),
        opened_at: await inside.databaseNow(),
      })
      await inside.tell(round.runId, 'group_opened', { groupId: round.groupId, round: round.round, n: round.spec.n })
    })
  }

  openSlots(
    groupId: Id,
    asked: readonly { readonly jobId: Id; readonly key: string | null }[],
  ): Promise<readonly SlotRecord[]> {
    return this.#transaction(async (inside) => {
      if (inside.home !== null) await requireHere(inside, (await inside.group(groupId)).runId)
      await inside.sql.lock('groups', groupId)
      const rounds = await inside.rounds(groupId)
      const known = rounds.flatMap(({ round, slots }) => slots.filter((one) => one.round === round))
      const open = rounds.find(({ settled }) => settled === null)
      const opened: SlotRecord[] = []
      for (const { jobId, key } of asked) {
        const before = known.find((one) => one.jobId === jobId || (key !== null && one.key === key))
        if (before !== undefined) {
          opened.push(before)
          continue
        }
        if (open === undefined) {
          throw new PaddockError('ROUND_SETTLED', `no round of group ${groupId} goes on, so it takes no new member`)
        }
        const slot: SlotRecord = { slot: known.length, round: open.round, jobId, key }
        await insert(inside.sql, slotsTable, { group: groupId, slot: slot.slot, round: slot.round, job: jobId, key })
        known.push(slot)
        opened.push(slot)
      }
      return opened
    })
  }

  settleRound(settled: SettledRound): Promise<SettledRound> {
    return this.#here(settled.runId, async (inside) => {
      const { groupId, runId, round, state, usable, members } = settled
      await inside.sql.lock('groups', groupId)
      const known = (await inside.rounds(groupId)).find((one) => one.round === round)
      if (known === undefined) throw new PaddockError('NOT_FOUND', `group ${groupId} has no round ${round}`)
      if (known.settled !== null) return known.settled
      const policies = trainedPolicies(await inside.run(runId))
      const whole: SettledRound = policies.length === 0 ? settled : { ...settled, policies }
      const record = JSON.stringify(whole)
      await insert(inside.sql, settledTable, { group: groupId, round, record, at: await inside.databaseNow() })
      await inside.tell(runId, 'group_settled', { groupId, round, state, usable, members: members.length })
      await inside.#remember(known, whole)
      return whole
    })
  }

  async putFingerprint(fingerprint: EngineFingerprint): Promise<Digest> {
    const digest = fingerprintDigest(fingerprint)
    await insert(this.sql, fingerprints, { id: digest, record: JSON.stringify(fingerprint) }, orNothing)
    return digest
  }

  async putVerification(verification: VerificationRecord): Promise<VerificationRecord> {
    const { id } = verification
    await insert(this.sql, catalogueTables.verifications, { id, record: JSON.stringify(verification) }, orNothing)
    return (await this.verification(id)) ?? verification
  }

  /** Mostly all of them are there: each hand-in of a node brings those of all its tokens. */
  async putTokenTexts(tokenizer: string, texts: ReadonlyMap<number, Uint8Array>): Promise<void> {
    const known = await this.#knownTokens(tokenizer, [...texts.keys()])
    const unknown = [...texts].filter(([token]) => !known.has(token))
    if (unknown.length === 0) return
    await this.#transaction(async ({ sql }) => {
      // In one order, so that two who put the same texts do not wait for each other.
      for (const [token, bytes] of unknown.toSorted(([a], [b]) => a - b)) {
        await insert(sql, tokenTexts, { tokenizer, token, bytes }, orNothing)
      }
    })
  }

  /** Those of them whose texts are there. */
  async #knownTokens(tokenizer: string, ids: readonly number[]): Promise<ReadonlySet<number>> {
    const rows = await this.sql.all<{ token: number }>(
      `SELECT token FROM token_texts WHERE tokenizer = ?
         AND token IN (SELECT CAST(value AS INTEGER) FROM ${this.sql.dialect.list} AS l)`,
      tokenizer,
      this.sql.list([...new Set(ids)]),
    )
    return new Set(rows.map(({ token }) => token))
  }

  async #tellLate({ id: verdictId, rolloutId, status, reward }: Verdict, of: RolloutRecord): Promise<void> {
    const { groupId, runId } = of
    const round = (await this.rounds(groupId)).find(({ settled }) =>
      settled?.members.some((member) => member.rolloutId === rolloutId),
    )
    if (round === undefined) return
    await this.tell(runId, 'verdict_late', { groupId, round: round.round, rolloutId, verdictId, status, reward })
    const inForce = verdictInForce((await this.rollout(rolloutId)).verdicts)
    await rememberReward(this.sql, rolloutId, inForce?.reward ?? null, await this.databaseNow())
  }

  /** What a task comes to by itself, of what may be trained: nothing that begins in the middle of another rollout. */
  async #remember({ groupId, runId, spec }: RoundView, { members }: SettledRound): Promise<void> {
    if (spec.fork !== null || isEval(await this.run(runId))) return
    const group = await this.group(groupId)
    if (heldOutSplits.has((await this.task(group.taskDigest)).split)) return
    await rememberRound(this.sql, group, members, await this.databaseNow())
  }

  putArchived(records: readonly ArchivedRecord[]): Promise<void> {
    return this.#transaction(async ({ sql }) => {
      for (const { sessionId: session, rolloutId: rollout, ofRollout: of_rollout, ...record } of records) {
        const { count, folder, home, object, head } = record
        const row = { session, count, folder, home, rollout, of_rollout, object, head }
        await insert(sql, catalogueTables.archived, row, orNothing)
      }
    })
  }

  /**
   * Writes what happened in a run, for whoever follows it: as the last thing of a transaction, which holds the run from here on.
   * So the events of a run are committed in the order of their numbers, and who has seen one has seen all before it.
   */
  async tell(runId: Id, kind: RunEvent['kind'], data: RunEvent['data']): Promise<void> {
    await this.sql.lock('runs', runId)
    const { nextEvent, now } = this.sql.dialect
    const next = await first<{ seq: number; at: number }>(this.sql, `SELECT ${nextEvent} AS seq, ${now} AS at`)
    const { seq = 1, at = 0 } = next ?? {}
    await insert(this.sql, runEventsTable, { seq, run: runId, kind, at, data: JSON.stringify(data) })
  }

  #transaction<T>(work: (inside: SqlCatalogue) => Promise<T>): Promise<T> {
    return this.sql.transaction((sql) => work(new SqlCatalogue(sql, this.home)))
  }

  /** A write into a run, which must be of this data directory. */
  #here<T>(runId: Id, work: (inside: SqlCatalogue) => Promise<T>): Promise<T> {
    return this.#transaction(async (inside) => {
      await requireHere(inside, runId)
      return work(inside)
    })
  }

  #put<Column extends string>(
    table: CoveredTable<Column>,
    record: { readonly id: Id },
    row: (record: string) => Readonly<Record<Column, string | number>>,
  ): Promise<void> {
    return this.#transaction(async ({ sql }) => {
      const text = JSON.stringify(record)
      await insert(sql, table, row(text), 'ON CONFLICT (id) DO NOTHING')
      const known = await first<{ record: string }>(sql, `SELECT record FROM ${table.name} WHERE id = ?`, record.id)
      if (known?.record !== text) throw conflict(table.name, record.id)
    })
  }

  #once(id: Id, write: (inside: SqlCatalogue) => Promise<boolean>): Promise<void> {
    return this.#transaction(async (inside) => {
      await inside.sql.lock('rollouts', id)
      if (inside.home !== null) await requireHere(inside, (await inside.rollout(id)).runId)
      const stands = await write(inside)
      if (!stands) throw new PaddockError('STORE_CONFLICT', `rollout ${id} has started or ended otherwise`)
    })
  }

  async #known(id: Id): Promise<void> {
    if ((await first(this.sql, 'SELECT 1 FROM rollouts WHERE id = ?', id)) === undefined) {
      throw new PaddockError('NOT_FOUND', `there is no rollout ${id}`)
    }
  }
}

function conflict(table: string, id: Id): PaddockError {
  return new PaddockError('STORE_CONFLICT', `another record stands under ${id} in ${table}`)
}
