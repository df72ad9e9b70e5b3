import type { Digest, Event, Id } from '../../core/index.ts'
import type { RunRecord, StoreReader } from '../../trajectory/index.ts'
import type {
  CallPlace,
  CurvePage,
  FamilyPage,
  GroupDetail,
  GroupLine,
  GroupPage,
  RolloutComparison,
  RolloutDetail,
  RunComparison,
  RunLine,
  RunPage,
  TaskDetail,
  TrainingPage,
  TreeLine,
} from './contract.ts'
import { compareRollouts } from './compare-rollouts.ts'
import { compareRuns } from './compare-runs.ts'
import { curvePage } from './curve-pages.ts'
import {
  failuresOf,
  type Handed,
  handedOf,
  isEffective,
  readRollout,
  readRollouts,
  type ReadRollout,
  rewardsOf,
  spreadOf,
  tallyOf,
} from './rollout-lines.ts'
import { type ReadSession, readSession } from './session-pages.ts'
import { taskDetail } from './task-pages.ts'
import { type CallPlaces, trainingPage } from './story-pages.ts'
import { familyPage, treeLines } from './tree-pages.ts'

/** What is read of a run or session is kept this long, so that pages of a list do not read it again. */
const freshMs = 3000
const keptSessions = 4
const keptRuns = 2
const keptTrees = 2
const rewardBins = 10
/** Verdicts of a rollout that a page gets, and characters of each one's evidence. */
const mostVerdicts = 10
const maxEvidenceChars = 32_000
const maxInstructionChars = 64_000

interface Kept<T> {
  readonly value: Promise<T>
  /** When it was read; infinite while it is. */
  at: number
}

/** What happened to a rollout. */
interface Story {
  readonly runId: Id
  readonly events: readonly Event[]
  readonly calls: CallPlaces
}

/** Reads a store for the viewer's pages. */
export class ViewPages {
  readonly #reader: StoreReader
  readonly #runs = new Map<Id, Kept<readonly ReadRollout[]>>()
  readonly #sessions = new Map<Id, Kept<ReadSession>>()
  readonly #trees = new Map<Id, Kept<readonly TreeLine[]>>()
  readonly #stories = new Map<Id, Kept<Story>>()
  readonly #families = new Map<Id, Kept<FamilyPage>>()

  constructor(reader: StoreReader) {
    this.#reader = reader
  }

  /** The newest runs first. */
  async runs(limit: number): Promise<readonly RunLine[]> {
    const runs = await this.#reader.catalogue.runs(limit)
    return runs.map(({ id, name, createdAt }) => ({ id, name, createdAt }))
  }

  /** Every rollout of a run. */
  async rollouts(runId: Id): Promise<readonly ReadRollout[]> {
    await this.#reader.catalogue.run(runId)
    return kept(this.#runs, runId, keptRuns, () => readRollouts(this.#reader, runId))
  }

  /** A run's numbers. Throws `NOT_FOUND`. */
  async run(id: Id): Promise<RunPage> {
    const { name, createdAt, config } = await this.#reader.catalogue.run(id)
    const rollouts = await this.rollouts(id)
    return {
      run: { id, name, createdAt, config },
      tally: tallyOf(rollouts),
      failures: failuresOf(rollouts),
      rewards: binned(rewardsOf(rollouts.filter(isEffective))),
    }
  }

  /** A run over time. Throws `NOT_FOUND`. */
  async curves(id: Id): Promise<CurvePage> {
    const { trainer } = this.#reader
    const [rollouts, told] = [await this.rollouts(id), await trainer.metrics(id, { afterStep: null })]
    return curvePage(rollouts, told, await trainer.dispositions(id, { rolloutId: null }), await trainer.versions(id))
  }

  /** A task over all runs. Throws `NOT_FOUND`. */
  async task(digest: Digest): Promise<TaskDetail> {
    const { catalogue, trainer } = this.#reader
    const task = await catalogue.task(digest)
    const views = await catalogue.rollouts({ taskDigest: digest })
    const runs = new Map<Id, RunRecord>()
    const handed = new Map<Id, Handed>()
    for (const id of new Set(views.map(({ runId }) => runId))) {
      runs.set(id, await catalogue.run(id))
      for (const [rolloutId, one] of await handedOf(trainer, id)) handed.set(rolloutId, one)
    }
    const rollouts = views.map((view) => readRollout(view, task.name, handed.get(view.id) ?? null))
    return taskDetail(task, digest, rollouts, runs)
  }

  /** Two rollouts side by side. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  comparedRollouts(ids: { readonly a: Id; readonly b: Id }): Promise<RolloutComparison> {
    return compareRollouts(this.#reader, (id) => this.session(id), ids)
  }

  /** Two runs side by side. Throws `NOT_FOUND`. */
  async comparedRuns(
    ids: { readonly a: Id; readonly b: Id },
    part: { readonly after: number; readonly limit: number },
  ): Promise<RunComparison> {
    const side = async (id: Id) => ({
      run: await this.#reader.catalogue.run(id),
      rollouts: await this.rollouts(id),
    })
    return compareRuns(await side(ids.a), await side(ids.b), part)
  }

  /** A page of a run's groups, in order of making. Throws `NOT_FOUND`. */
  async groups(runId: Id, after: number, limit: number): Promise<GroupPage> {
    const members = Map.groupBy(await this.rollouts(runId), ({ line }) => line.groupId)
    const all = [...members].map(([id, of]) => groupLine(id, of))
    const rows = all.slice(after, after + limit)
    return { total: all.length, rows, next: after + rows.length < all.length ? after + rows.length : null }
  }

  /** A group with its members. Throws `NOT_FOUND`. */
  async group(id: Id): Promise<GroupDetail> {
    const { catalogue } = this.#reader
    const group = await catalogue.group(id)
    const task = await catalogue.task(group.taskDigest)
    const members = (await catalogue.rollouts({ groupId: id })).map((view) => readRollout(view, task.name))
    return {
      group: { ...groupLine(id, members), task: task.name, runId: group.runId, instruction: task.instruction },
      members: members.map(({ line, verdict }) => ({ ...line, components: verdict?.components ?? {} })),
    }
  }

  /** A rollout with its sessions and verdicts. Throws `NOT_FOUND`. */
  async rollout(id: Id): Promise<RolloutDetail> {
    const { catalogue, recorder } = this.#reader
    const view = await catalogue.rollout(id)
    const task = await catalogue.task(view.taskDigest)
    const { line, verdict } = readRollout(view, task.name)
    const sessions = await recorder.sessions({ rolloutId: id })
    const others = view.verdicts.filter((one) => one.id !== verdict?.id).toReversed()
    const all = verdict === null ? others : [verdict, ...others]
    return {
      rollout: { ...line, runId: view.runId, endDetail: view.endDetail, taints: view.taints, labels: view.labels },
      task: {
        name: task.name,
        environment: task.environment,
        instruction: task.instruction.slice(0, maxInstructionChars),
      },
      verdicts: all
        .slice(0, mostVerdicts)
        .map((one) => ({ ...one, evidence: one.evidence.slice(0, maxEvidenceChars) })),
      olderVerdicts: Math.max(0, all.length - mostVerdicts),
      sessions: sessions.map((session) => ({ id: session.id, role: session.role, createdAt: session.createdAt })),
    }
  }

  /** What happened to a rollout beside its calls, and where those stand. Throws `NOT_FOUND`. */
  async story(id: Id): Promise<Story> {
    const { runId } = await this.#reader.catalogue.rollout(id)
    return kept(this.#stories, id, keptTrees, async () => {
      const events = await this.#reader.recorder.events({ rolloutId: id })
      const calls = new Map<Id, CallPlace>()
      for (const session of await this.#reader.recorder.sessions({ rolloutId: id })) {
        const { log } = await this.session(session.id)
        for (const { intent } of log.calls) calls.set(intent.id, { sessionId: session.id, seq: intent.seq })
      }
      return { runId, events, calls }
    })
  }

  /** What a trainer did with a rollout. Throws `NOT_FOUND`. */
  async training(id: Id): Promise<TrainingPage> {
    const { trainer, catalogue } = this.#reader
    const { runId } = await catalogue.rollout(id)
    const of = { rolloutId: id }
    const [handed, given] = [await trainer.handedRows(runId, of), await trainer.dispositions(runId, of)]
    return trainingPage(runId, handed, given, await trainer.versions(runId))
  }

  /** Every call of a rollout, session by session, as they hang together. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  async tree(id: Id): Promise<readonly TreeLine[]> {
    await this.#reader.catalogue.rollout(id)
    return kept(this.#trees, id, keptTrees, async () => {
      const lines: TreeLine[] = []
      for (const session of await this.#reader.recorder.sessions({ rolloutId: id })) {
        lines.push(...treeLines(await this.session(session.id)))
      }
      return lines
    })
  }

  /** The rollouts that a rollout's past or future is shared with. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  family(id: Id): Promise<FamilyPage> {
    return kept(this.#families, id, keptTrees, () => familyPage(this.#reader, id))
  }

  /** A session without its bodies. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  session(id: Id): Promise<ReadSession> {
    return kept(this.#sessions, id, keptSessions, () => readSession(this.#reader, id))
  }
}

function groupLine(id: Id, members: readonly ReadRollout[]): GroupLine {
  return {
    id,
    task: members[0]?.line.task ?? '',
    ...tallyOf(members),
    spread: spreadOf(rewardsOf(members.filter(isEffective))),
  }
}

function binned(rewards: readonly number[]): RunPage['rewards'] {
  const least = Math.min(0, ...rewards)
  const most = Math.max(1, ...rewards)
  const bins = Array.from({ length: rewardBins }, () => 0)
  for (const reward of rewards) {
    const at = Math.min(rewardBins - 1, Math.floor(((reward - least) / (most - least)) * rewardBins))
    bins[at] = (bins[at] ?? 0) + 1
  }
  return { least, most, bins }
}

/** Reads once for all who ask within a moment; a failure is not kept. */
function kept<T>(map: Map<Id, Kept<T>>, id: Id, most: number, read: () => Promise<T>): Promise<T> {
  const before = map.get(id)
  if (before !== undefined && performance.now() - before.at < freshMs) return before.value
  map.delete(id)
  const one: Kept<T> = { value: read(), at: Infinity }
  map.set(id, one)
  one.value.then(
    () => (one.at = performance.now()),
    () => map.delete(id),
  )
  for (const oldest of map.keys()) {
    if (map.size <= most) break
    map.delete(oldest)
  }
  return one.value
}
