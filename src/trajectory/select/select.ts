import { type Id, PaddockError, type Task } from '../../core/index.ts'
import {
  type CatalogueReader,
  type CountedAttempt,
  countedAttempt,
  type GroupRecord,
  isEval,
  nullShareOf,
  type RecorderReader,
  type RolloutView,
  type RoundView,
  type SessionLog,
  type SessionRecord,
} from '../contract/index.ts'
import { cutOf } from '../catalogue/index.ts'
import type {
  DropReason,
  ExportRollout,
  RowSideChannel,
  Selection,
  SelectionQuery,
  SelectionSummary,
} from '../rows-contract.ts'
import {
  Accounting,
  buildRows,
  type BuiltRows,
  knownTokenTexts,
  MessageSpans,
  ownBucket,
  type RowOptions,
  sideChannelsOf,
  toolStatuses,
} from '../rows/index.ts'
import { asWritten, conversationOf, type RequestReader } from './conversation.ts'
import { DriftTally } from './drift.ts'
import { type Member, planGroup } from './group-plan.ts'
import { dropOf, isSelected, verdictFor } from './matches.ts'
import { chosenBy } from './selector.ts'
import { needsSurvey, survey } from './survey.ts'
import { rowWeights, weightRuleOf } from './weights.ts'

/** What a selection reads. */
export interface SelectionSource {
  readonly recorder: RecorderReader
  readonly catalogue: CatalogueReader
  /** Without it requests of other dialects than `chat` are given as they were written. */
  readonly readRequest?: RequestReader | undefined
}

/**
 * Rollouts for an export, group by group, one rollout's tokens in memory at a time. Group rules count rollouts that
 * are usable, never rows. Iterable once; `summary()` throws `EXPORT_REFUSED` before the iteration has ended.
 */
export function selectForExport(source: SelectionSource, query: SelectionQuery = {}): Selection {
  const pass = new SelectionPass(source, query)
  return { [Symbol.asyncIterator]: () => pass.rollouts(), summary: () => pass.summary() }
}

class SelectionPass {
  readonly #source: SelectionSource
  readonly #query: SelectionQuery
  readonly #accounting = new Accounting()
  readonly #drift = new DriftTally()
  readonly #tasks = new Map<string, Task>()
  readonly #droppedRollouts: SelectionSummary['rollouts']['dropped'][number][] = []
  readonly #droppedGroups: SelectionSummary['groups']['dropped'][number][] = []
  readonly #rowsLeftOut: Partial<Record<DropReason, number>> = {}
  readonly #counted: CountedAttempt[] = []
  #selectedRollouts = 0
  #exportedRollouts = 0
  #selectedGroups = 0
  #exportedGroups = 0
  readonly #asked = new Set<number>()
  readonly #seenPolicies = new Set<string>()
  #state: 'new' | 'running' | 'ended' = 'new'

  constructor(source: SelectionSource, query: SelectionQuery) {
    this.#source = source
    this.#query = query
  }

  async *rollouts(): AsyncGenerator<ExportRollout> {
    if (this.#state !== 'new') throw new PaddockError('EXPORT_REFUSED', 'A selection can be read once')
    this.#state = 'running'
    const limit = this.#query.limit ?? Number.POSITIVE_INFINITY
    for await (const { group, members: all, rounds } of this.#groups()) {
      this.#selectedGroups += 1
      const { members, dropped, advantages } = planGroup(all, this.#query, limit - this.#exportedRollouts)
      if (dropped !== null) {
        this.#droppedGroups.push({ groupId: group.id, reason: dropped, rollouts: members.length })
      } else {
        this.#exportedGroups += 1
        for (const asked of askedOf(rounds)) this.#asked.add(asked)
      }
      const { name } = await this.#task(group.taskDigest)
      const weights = weightsIn(rounds)
      for (const member of members) {
        const { rollout, drop } = member
        this.#selectedRollouts += 1
        // These were never meant to have a number.
        if (drop?.reason !== 'imported' && drop?.reason !== 'rewritten') {
          this.#counted.push(countedAttempt(rollout, name, weights.get(rollout.id)))
        }
        if (drop === null) {
          this.#exportedRollouts += 1
          yield await this.#export(member, group, advantages.get(rollout.id) ?? null)
        } else {
          this.#droppedRollouts.push({ rolloutId: rollout.id, ...drop })
          for await (const log of this.#logs(rollout.id, [])) this.#accounting.dropped(log, drop.reason)
        }
      }
    }
    this.#requireSeen()
    this.#state = 'ended'
  }

  /** Throws `POLICY_UNKNOWN` where nothing was sampled by the policy that was asked for, and something was by others. */
  #requireSeen(): void {
    const { policy } = this.#query
    if (policy === undefined || this.#seenPolicies.size === 0 || this.#seenPolicies.has(policy)) return
    const known = [...this.#seenPolicies]
    throw new PaddockError('POLICY_UNKNOWN', `No selected rollout has a session of policy ${policy}.`, {
      data: { policy, known },
      fix: `They have sessions of ${known.join(', ')}.`,
    })
  }

  summary(): SelectionSummary {
    if (this.#state !== 'ended') {
      throw new PaddockError('EXPORT_REFUSED', 'The selection has not been read to its end')
    }
    return {
      accounting: this.#accounting.total(),
      rollouts: {
        selected: this.#selectedRollouts,
        exported: this.#exportedRollouts,
        dropped: this.#droppedRollouts,
      },
      groups: {
        selected: this.#selectedGroups,
        exported: this.#exportedGroups,
        dropped: this.#droppedGroups,
        asked: [...this.#asked],
      },
      nulls: nullShareOf(this.#counted),
      rowsLeftOut: { ...this.#rowsLeftOut },
      drift: this.#drift.total(),
    }
  }

  async *#groups(): AsyncGenerator<{
    readonly group: GroupRecord
    readonly members: readonly Member[]
    readonly rounds: readonly RoundView[]
  }> {
    for (const groupId of await this.#groupIds()) {
      const group = await this.#source.catalogue.group(groupId)
      const task = await this.#task(group.taskDigest)
      const rollouts = await this.#source.catalogue.rollouts({ groupId })
      const rounds = await this.#source.catalogue.rounds(groupId)
      const members: Member[] = []
      for (const rollout of rollouts) {
        if (!isSelected(rollout, task, this.#query)) continue
        members.push(await this.#member(rollout, { group, isMasked: isMasked(rollout, rounds) }))
      }
      if (members.length > 0) yield { group, rounds, members: chosenBy(this.#query.selector, group, task, members) }
    }
  }

  async #member(
    rollout: RolloutView,
    { group, isMasked: masked }: { readonly group: GroupRecord; readonly isMasked: boolean },
  ): Promise<Member> {
    const member = { rollout, drop: dropOf(rollout, this.#query), leave: new Map(), isMasked: masked }
    if (member.drop !== null || !needsSurvey(this.#query)) return member
    const { leave, kept, maskReasons } = await survey(
      this.#logs(rollout.id, [], (session) => this.#isAsked(session)),
      this.#rowOptions(member, group),
      this.#query,
    )
    if (kept > 0) return { ...member, leave }
    const detail = maskReasons.length === 0 ? 'it has no rows' : `its tokens are masked: ${maskReasons.join(', ')}`
    return { ...member, drop: { reason: 'nothing_to_train', detail }, leave }
  }

  #rowOptions({ rollout, leave, isMasked: maskCut }: Member, group: GroupRecord): RowOptions {
    const { trainClasses, includeUntrainedRows, maskMixedWeights, wholeAnswersOnly, view } = this.#query
    return {
      rolloutId: rollout.id,
      groupId: group.id,
      taskDigest: group.taskDigest,
      leave,
      maskCut,
      ...(view === undefined ? {} : { view }),
      ...(trainClasses === undefined ? {} : { trainClasses }),
      ...(includeUntrainedRows === undefined ? {} : { includeUntrainedRows }),
      ...(maskMixedWeights === undefined ? {} : { maskMixedWeights }),
      ...(wholeAnswersOnly === undefined ? {} : { wholeAnswersOnly }),
    }
  }

  async #groupIds(): Promise<readonly Id[]> {
    const { rolloutIds, groupIds, runIds } = this.#query
    const { catalogue } = this.#source
    if (rolloutIds !== undefined) {
      const found = new Set<Id>()
      for (const id of rolloutIds) found.add((await catalogue.rollout(id)).groupId)
      return [...found]
    }
    if (groupIds !== undefined) return groupIds
    const runs = runIds ?? (await catalogue.runs()).flatMap((run) => (isEval(run) ? [] : [run.id])).toReversed()
    const found: Id[] = []
    for (const runId of runs) for (const group of await catalogue.groups(runId)) found.push(group.id)
    return found
  }

  async #task(digest: string): Promise<Task> {
    const known = this.#tasks.get(digest)
    if (known !== undefined) return known
    const task = await this.#source.catalogue.task(digest)
    this.#tasks.set(digest, task)
    return task
  }

  async #export(member: Member, group: GroupRecord, advantage: number | null): Promise<ExportRollout> {
    const { rollout, leave } = member
    for (const reason of leave.values()) this.#rowsLeftOut[reason] = (this.#rowsLeftOut[reason] ?? 0) + 1
    const options = this.#rowOptions(member, group)
    const task = await this.#task(group.taskDigest)
    const rows: BuiltRows['rows'][number][] = []
    const conversations: ExportRollout['conversations'][number][] = []
    const sideChannels: RowSideChannel[] = []
    const { includeEvents = false, includeSpans = false, view = 'as_sampled' } = this.#query
    const { recorder, readRequest = asWritten } = this.#source
    const events = includeEvents || includeSpans ? await recorder.events({ rolloutId: rollout.id }) : []
    const spans: NonNullable<ExportRollout['spans']>[number][] = []
    for await (const log of this.#logs(rollout.id, 'all')) {
      if (!this.#isAsked(log.session)) {
        this.#accounting.dropped(log, 'other_policy')
        continue
      }
      const built = buildRows(log, options)
      if (built.unclean > 0) this.#rowsLeftOut.clean_unknown = (this.#rowsLeftOut.clean_unknown ?? 0) + built.unclean
      this.#accounting.exported(log, built)
      if (ownBucket(log.session) === null) this.#drift.add(log)
      sideChannels.push(...sideChannelsOf(log))
      const calls = new Map(log.calls.map((call) => [call.intent.id, call]))
      for (const row of built.rows) {
        const call = row.leafCallId === null ? null : (calls.get(row.leafCallId) ?? null)
        rows.push(row)
        conversations.push(conversationOf(log, call, row.segments.at(-1)?.choice ?? null, { view, readRequest }))
      }
      if (!includeSpans) continue
      const texts = await knownTokenTexts(this.#source, log)
      const ofLog = new MessageSpans({ log, readRequest, view, texts, statuses: toolStatuses(events) })
      for (const row of built.rows) spans.push(ofLog.of(row))
    }
    return {
      rollout,
      group,
      taskName: task.name,
      environment: task.environment,
      instruction: task.instruction,
      verdict: verdictFor(rollout, this.#query),
      advantage,
      rows,
      rowWeights: rowWeights(rows, weightRuleOf(this.#query)),
      conversations,
      ...(includeEvents ? { events } : {}),
      ...(includeSpans ? { spans } : {}),
      ...(sideChannels.length === 0 ? {} : { sideChannels }),
    }
  }

  /** Whether the policy of a session is the one that is asked for. Sessions beside the agents' belong to none. */
  #isAsked({ policy, role }: SessionRecord): boolean {
    if (this.#query.policy === undefined || role !== 'agent') return true
    this.#seenPolicies.add(policy.name ?? 'one without a name')
    return policy.name === this.#query.policy
  }

  async *#logs(
    rolloutId: Id,
    bodies: 'all' | readonly Id[],
    isWanted: (session: SessionRecord) => boolean = () => true,
  ): AsyncGenerator<SessionLog> {
    const sessions = (await this.#source.recorder.sessions({ rolloutId })).filter(isWanted)
    for (const { id } of sessions) yield this.#source.recorder.session(id, { bodies })
  }
}

/** Whether a rollout was cut, and its round masks those. */
function isMasked({ slot, end }: RolloutView, rounds: readonly RoundView[]): boolean {
  const round = rounds.findLast(({ slots }) => slots.some((one) => one.slot === slot))
  return round !== undefined && cutOf(round.spec, end) === 'mask'
}

/** The weights that sampled members of settled rounds, by rollout. */
function weightsIn(rounds: readonly RoundView[]): ReadonlyMap<Id, readonly string[]> {
  const members = rounds.flatMap(({ settled }) => settled?.members ?? [])
  return new Map(members.map(({ rolloutId, weights = [] }) => [rolloutId, weights]))
}

/** The members that the round of a group was to have; nothing where there were several rounds, or none. */
function askedOf(rounds: readonly RoundView[]): readonly number[] {
  if (rounds.length > 1) return []
  return rounds.map(({ spec: { n, stopWhen } }) => (stopWhen.kind === 'usable' ? stopWhen.count : n))
}
