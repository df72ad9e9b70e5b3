import { type Id, PaddockError, type Task } from '../../core/index.ts'
import type { CatalogueReader, GroupRecord, RecorderReader, RolloutView, SessionLog } from '../contract/index.ts'
import type {
  DropReason,
  ExportRollout,
  RowSideChannel,
  Selection,
  SelectionQuery,
  SelectionSummary,
} from '../rows-contract.ts'
import { Accounting, buildRows, type BuiltRows } from '../rows/index.ts'
import { conversationOf, type RequestReader } from './conversation.ts'
import { DriftTally } from './drift.ts'
import { dropOf, isSelected } from './matches.ts'
import { sideChannelsOf } from './side-channels.ts'
import { verdictInForce } from './verdict-in-force.ts'
import { rowWeights } from './weights.ts'

/** What a selection reads. */
export interface SelectionSource {
  readonly recorder: RecorderReader
  readonly catalogue: CatalogueReader
  /** Without it requests of other dialects than `chat` are given as they were written. */
  readonly readRequest?: RequestReader | undefined
}

interface Member {
  readonly rollout: RolloutView
  readonly drop: { readonly reason: DropReason; readonly detail: string } | null
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
  #selectedRollouts = 0
  #exportedRollouts = 0
  #selectedGroups = 0
  #exportedGroups = 0
  #state: 'new' | 'running' | 'ended' = 'new'

  constructor(source: SelectionSource, query: SelectionQuery) {
    this.#source = source
    this.#query = query
  }

  async *rollouts(): AsyncGenerator<ExportRollout> {
    if (this.#state !== 'new') throw new PaddockError('EXPORT_REFUSED', 'A selection can be read once')
    this.#state = 'running'
    const limit = this.#query.limit ?? Number.POSITIVE_INFINITY
    for await (const { group, members } of this.#groups()) {
      this.#selectedGroups += 1
      const usable = members.filter((member) => member.drop === null)
      const groupDrop = this.#groupDrop(usable)
      if (groupDrop !== null) {
        this.#droppedGroups.push({ groupId: group.id, reason: groupDrop, rollouts: members.length })
      } else this.#exportedGroups += 1
      for (const { rollout, drop } of members) {
        this.#selectedRollouts += 1
        const whole: Member['drop'] =
          drop ??
          (groupDrop === null ? null : { reason: 'group_dropped', detail: groupDrop }) ??
          (this.#exportedRollouts < limit ? null : { reason: 'filtered', detail: `limit ${limit}` })
        if (whole === null) {
          this.#exportedRollouts += 1
          yield await this.#export(rollout, group)
        } else {
          this.#droppedRollouts.push({ rolloutId: rollout.id, ...whole })
          for await (const log of this.#logs(rollout.id, [])) this.#accounting.dropped(log, whole.reason)
        }
      }
    }
    this.#state = 'ended'
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
      groups: { selected: this.#selectedGroups, exported: this.#exportedGroups, dropped: this.#droppedGroups },
      drift: this.#drift.total(),
    }
  }

  async *#groups(): AsyncGenerator<{ readonly group: GroupRecord; readonly members: readonly Member[] }> {
    for (const groupId of await this.#groupIds()) {
      const group = await this.#source.catalogue.group(groupId)
      const task = await this.#task(group.taskDigest)
      const rollouts = await this.#source.catalogue.rollouts({ groupId })
      const members = rollouts
        .filter((rollout) => isSelected(rollout, task, this.#query))
        .map((rollout) => ({ rollout, drop: dropOf(rollout, this.#query) }))
      if (members.length > 0) yield { group, members }
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
    const runs = runIds ?? (await catalogue.runs()).map((run) => run.id).toReversed()
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

  #groupDrop(usable: readonly Member[]): 'too_small' | 'zero_variance' | 'empty' | null {
    if (usable.length === 0) return 'empty'
    if (usable.length < (this.#query.minGroupSize ?? 1)) return 'too_small'
    if (this.#query.dropZeroVariance !== true) return null
    const rewards = new Set(usable.map(({ rollout }) => verdictInForce(rollout.verdicts)?.reward))
    return rewards.size === 1 ? 'zero_variance' : null
  }

  async #export(rollout: RolloutView, group: GroupRecord): Promise<ExportRollout> {
    const { trainClasses, includeUntrainedRows, maskMixedWeights, weightRule = 'full' } = this.#query
    const task = await this.#task(group.taskDigest)
    const rows: BuiltRows['rows'][number][] = []
    const conversations: ExportRollout['conversations'][number][] = []
    const sideChannels: RowSideChannel[] = []
    for await (const log of this.#logs(rollout.id, 'all')) {
      const built = buildRows(log, {
        rolloutId: rollout.id,
        groupId: group.id,
        taskDigest: group.taskDigest,
        ...(trainClasses === undefined ? {} : { trainClasses }),
        ...(includeUntrainedRows === undefined ? {} : { includeUntrainedRows }),
        ...(maskMixedWeights === undefined ? {} : { maskMixedWeights }),
      })
      this.#accounting.exported(log, built)
      this.#drift.add(log)
      sideChannels.push(...sideChannelsOf(log))
      const calls = new Map(log.calls.map((call) => [call.intent.id, call]))
      for (const row of built.rows) {
        const call = row.leafCallId === null ? null : (calls.get(row.leafCallId) ?? null)
        rows.push(row)
        conversations.push(conversationOf(log, call, row.segments.at(-1)?.choice ?? null, this.#source.readRequest))
      }
    }
    return {
      rollout,
      group,
      taskName: task.name,
      environment: task.environment,
      instruction: task.instruction,
      verdict: verdictInForce(rollout.verdicts),
      rows,
      rowWeights: rowWeights(rows, weightRule),
      conversations,
      ...(sideChannels.length === 0 ? {} : { sideChannels }),
    }
  }

  async *#logs(rolloutId: Id, bodies: 'all' | readonly Id[]): AsyncGenerator<SessionLog> {
    const sessions = await this.#source.recorder.sessions({ rolloutId })
    for (const { id } of sessions) yield this.#source.recorder.session(id, { bodies })
  }
}
