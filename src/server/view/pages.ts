import type { Digest, Event, Id } from '../../core/index.ts'
import {
  MemberWeights,
  type NullShare,
  nullShareOf,
  type RunRecord,
  type StoreReader,
  verdictInForce,
} from '../../trajectory/index.ts'
import type {
  CallPlace,
  CurvePage,
  FamilyPage,
  GroupLine,
  GroupPage,
  MemberLine,
  NullLine,
  NullPage,
  RolloutComparison,
  RolloutDetail,
  RolloutPulse,
  RunComparison,
  RunExtent,
  RunLine,
  RunPage,
  RunPulse,
  TaskDetail,
  TrainingPage,
  TreeLine,
} from './contract.ts'
import { compareRollouts } from './compare-rollouts.ts'
import { compareRuns } from './compare-runs.ts'
import { curvePage } from './curve-pages.ts'
import {
  failuresOf,
  isEffective,
  readRollout,
  type ReadRollout,
  rewardsOf,
  spreadOf,
  tallyOf,
} from './rollout-lines.ts'
import { type ReadSession, readSession, shownPolicy } from './session-pages.ts'
import { taskDetail } from './task-pages.ts'
import { HandedOfRun, HandedOfTask } from './handed.ts'
import { type BookRead, RolloutBook } from './rollout-book.ts'
import { type CallPlaces, trainingPage } from './story-pages.ts'
import { familyPage, treeLines } from './tree-pages.ts'

/** How often it is looked whether the store went on: nothing is read again before. */
const freshMs = 1000
/** How long a page of a run waits for more of it to be read. */
const partMs = 300
const keptSessions = 4
/** Runs, and tasks, that are kept. */
const keptBooks = 2
const keptTrees = 2
const rewardBins = 10
/** Parts of rewards that a group's table has columns for. */
const mostComponents = 8
/** Verdicts of a rollout that a page gets, and characters of each one's evidence. */
const mostVerdicts = 10
const maxEvidenceChars = 32_000
const maxInstructionChars = 64_000
/** Weights that a page of missing numbers gets. */
const mostNullVersions = 200

interface Kept<T> {
  readonly value: Promise<T>
  /** How far the store was when it was read. */
  readonly stamp: string
}

/** What happened to a rollout. */
interface Story {
  readonly runId: Id
  readonly events: readonly Event[]
  readonly calls: CallPlaces
}

/** A run with what its trainer was handed and said. */
interface RunBook {
  readonly book: RolloutBook
  readonly training: HandedOfRun
  readonly weights: MemberWeights
}

/** Reads a store for the viewer's pages. */
export class ViewPages {
  readonly #reader: StoreReader
  readonly #books = new Map<Id, RunBook>()
  readonly #tasks = new Map<Digest, RolloutBook>()
  readonly #sessions = new Map<Id, Kept<ReadSession>>()
  readonly #trees = new Map<Id, Kept<readonly TreeLine[]>>()
  readonly #stories = new Map<Id, Kept<Story>>()
  #stamp: Promise<string> | null = null
  #stampedAt = -Infinity
  readonly #families = new Map<Id, Kept<FamilyPage>>()

  constructor(reader: StoreReader) {
    this.#reader = reader
  }

  /** The newest runs first. */
  async runs(limit: number): Promise<readonly RunLine[]> {
    const runs = await this.#reader.catalogue.runs(limit)
    return runs.map(({ id, name, createdAt }) => ({ id, name, createdAt }))
  }

  /**
   * The rollouts of a run, as far as they are read by now: of a large run that nobody looked at yet, a part. Throws `NOT_FOUND`.
   */
  async read(runId: Id, budgetMs: number = partMs): Promise<BookRead & Omit<RunBook, 'book'>> {
    await this.#reader.catalogue.run(runId)
    const { book, ...rest } = recent(this.#books, runId, () => this.#bookOf(runId))
    return { ...(await book.read(budgetMs)), ...rest }
  }

  #bookOf(runId: Id): RunBook {
    const { catalogue, trainer } = this.#reader
    const training = new HandedOfRun(trainer, runId)
    const count = (): Promise<number> => catalogue.countRollouts({ runId })
    const book = new RolloutBook(catalogue, { runId }, { count, handed: training })
    return { book, training, weights: new MemberWeights(catalogue, runId) }
  }

  /** Every rollout of a run, read in parts until all are there. Throws `NOT_FOUND`. */
  async rollouts(runId: Id): Promise<readonly ReadRollout[]> {
    for (;;) {
      const { rollouts, isWhole } = await this.read(runId)
      if (isWhole) return rollouts
    }
  }

  /** A run's numbers. Throws `NOT_FOUND`. */
  async run(id: Id): Promise<RunPage> {
    const { name, createdAt, config } = await this.#reader.catalogue.run(id)
    const read = await this.read(id)
    const { rollouts } = read
    return {
      read: extentOf(read),
      run: { id, name, createdAt, config },
      tally: tallyOf(rollouts),
      failures: failuresOf(rollouts),
      rewards: binned(rewardsOf(rollouts.filter(isEffective))),
    }
  }

  /** A run over time. Throws `NOT_FOUND`. */
  async curves(id: Id): Promise<CurvePage> {
    const read = await this.read(id)
    return curvePage(read.rollouts, read.training, await nullsOf(read))
  }

  /** The share of missing numbers of a run; tasks and weights with the largest share first. Throws `NOT_FOUND`. */
  async nulls(id: Id): Promise<Omit<NullPage, 'total' | 'rows' | 'next'> & { readonly lines: readonly NullLine[] }> {
    const read = await this.read(id)
    const { tasks, versions, ...all } = await nullsOf(read)
    return {
      read: extentOf(read),
      all,
      versions: nullLines(versions).slice(0, mostNullVersions),
      lines: nullLines(tasks),
    }
  }

  /** A task over all runs, as far as its rollouts are read by now. Throws `NOT_FOUND`. */
  async task(digest: Digest): Promise<TaskDetail> {
    const { catalogue, trainer } = this.#reader
    const task = await catalogue.task(digest)
    const book = recent(this.#tasks, digest, () => {
      const count = (): Promise<number> => catalogue.countRollouts({ taskDigest: digest })
      return new RolloutBook(catalogue, { taskDigest: digest }, { count, handed: new HandedOfTask(trainer) })
    })
    const read = await book.read(partMs)
    const runs = new Map<Id, RunRecord>()
    for (const id of new Set(read.rollouts.map(({ runId }) => runId))) runs.set(id, await catalogue.run(id))
    return { ...taskDetail(task, digest, read.rollouts, runs), read: extentOf(read) }
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

  /** A run's groups, in order of making. Throws `NOT_FOUND`. */
  async groups(runId: Id): Promise<readonly GroupLine[]> {
    const members = Map.groupBy((await this.read(runId)).rollouts, ({ line }) => line.groupId)
    return [...members].map(([id, of]) => groupLine(id, of))
  }

  /** A group with its members. Throws `NOT_FOUND`. */
  async group(id: Id): Promise<Pick<GroupPage, 'group' | 'names'> & { readonly members: readonly MemberLine[] }> {
    const { catalogue } = this.#reader
    const group = await catalogue.group(id)
    const task = await catalogue.task(group.taskDigest)
    const views = await catalogue.rollouts({ groupId: id })
    const members = views.map((view) => readRollout(view, task.name))
    const components = views.map((view) => verdictInForce(view.verdicts)?.components ?? {})
    const names = [...new Set(components.flatMap((own) => Object.keys(own)))].slice(0, mostComponents)
    return {
      group: {
        ...groupLine(id, members),
        task: task.name,
        taskDigest: group.taskDigest,
        runId: group.runId,
        instruction: task.instruction.slice(0, maxInstructionChars),
        mostReward: Math.max(1, ...members.map(({ line }) => Math.abs(line.reward ?? 0))),
      },
      names,
      members: members.map(({ line }, at) => ({
        ...line,
        components: names.map((name) => components[at]?.[name] ?? null),
      })),
    }
  }

  /** A rollout with its sessions and verdicts. Throws `NOT_FOUND`. */
  async rollout(id: Id): Promise<RolloutDetail> {
    const { catalogue, recorder } = this.#reader
    const view = await catalogue.rollout(id)
    const task = await catalogue.task(view.taskDigest)
    const { line } = readRollout(view, task.name)
    const verdict = verdictInForce(view.verdicts)
    const sessions = await recorder.sessions({ rolloutId: id })
    const others = view.verdicts.filter((one) => one.id !== verdict?.id).toReversed()
    const all = verdict === null ? others : [verdict, ...others]
    return {
      rollout: { ...line, runId: view.runId, endDetail: view.endDetail, taints: view.taints, labels: view.labels },
      task: {
        digest: view.taskDigest,
        name: task.name,
        environment: task.environment,
        instruction: task.instruction.slice(0, maxInstructionChars),
      },
      verdicts: all
        .slice(0, mostVerdicts)
        .map((one) => ({ ...one, evidence: one.evidence.slice(0, maxEvidenceChars) })),
      olderVerdicts: Math.max(0, all.length - mostVerdicts),
      sessions: sessions.map((session) => ({
        id: session.id,
        role: session.role,
        ...shownPolicy(session),
        createdAt: session.createdAt,
      })),
    }
  }

  /** What happened to a rollout beside its calls, and where those stand. Throws `NOT_FOUND`. */
  async story(id: Id): Promise<Story> {
    const { runId } = await this.#reader.catalogue.rollout(id)
    return this.#kept(this.#stories, id, keptTrees, async () => {
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
    const labels = [...new Set(handed.flatMap((row) => row.labels))]
    return trainingPage(runId, handed, given, await trainer.ordinals(runId, labels))
  }

  /** Every call of a rollout, session by session, as they hang together. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  async tree(id: Id): Promise<readonly TreeLine[]> {
    await this.#reader.catalogue.rollout(id)
    return this.#kept(this.#trees, id, keptTrees, async () => {
      const lines: TreeLine[] = []
      for (const session of await this.#reader.recorder.sessions({ rolloutId: id })) {
        lines.push(...treeLines(await this.session(session.id)))
      }
      return lines
    })
  }

  /** The rollouts that a rollout's past or future is shared with. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  family(id: Id): Promise<FamilyPage> {
    return this.#kept(this.#families, id, keptTrees, () => familyPage(this.#reader, id))
  }

  /** How far the store is, as pages show it. Another one stands for other contents. */
  stamp(): Promise<string> {
    if (this.#stamp === null || performance.now() - this.#stampedAt > freshMs) {
      this.#stampedAt = performance.now()
      const { recorder, catalogue } = this.#reader
      this.#stamp = Promise.all([recorder.mark(), catalogue.mark()]).then((marks) => marks.join('/'))
      this.#stamp.catch(() => (this.#stamp = null))
    }
    return this.#stamp
  }

  /** Whether the page of a rollout shows all that there is of it. Throws `NOT_FOUND`. */
  async rolloutPulse(id: Id): Promise<RolloutPulse> {
    const stamp = await this.stamp()
    const { end } = await this.#reader.catalogue.rollout(id)
    return { mark: `${stamp}/${end ?? ''}`, isRunning: end === null }
  }

  /** Whether the page of a run shows all that there is of it. Throws `NOT_FOUND`. */
  async runPulse(id: Id): Promise<RunPulse> {
    const read = await this.read(id)
    return { ...extentOf(read), running: read.rollouts.filter(({ line }) => line.end === null).length }
  }

  /** A session without its bodies. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  session(id: Id): Promise<ReadSession> {
    return this.#kept(this.#sessions, id, keptSessions, () => readSession(this.#reader, id))
  }

  /** Reads once for all who ask until the store goes on; a failure is not kept. */
  async #kept<T>(map: Map<Id, Kept<T>>, id: Id, most: number, read: () => Promise<T>): Promise<T> {
    const stamp = await this.stamp()
    const before = map.get(id)
    if (before?.stamp === stamp) return before.value
    map.delete(id)
    const one: Kept<T> = { value: read(), stamp }
    map.set(id, one)
    one.value.catch(() => {
      if (map.get(id) === one) map.delete(id)
    })
    for (const oldest of map.keys()) {
      if (map.size <= most) break
      map.delete(oldest)
    }
    return one.value
  }
}

async function nullsOf({
  rollouts,
  weights,
}: Pick<BookRead, 'rollouts'> & Pick<RunBook, 'weights'>): Promise<NullShare> {
  const sampled = await weights.read()
  return nullShareOf(rollouts.map(({ line, counted }) => ({ ...counted, versions: sampled.get(line.id) ?? [] })))
}

function nullLines(counts: NullShare['tasks']): readonly NullLine[] {
  return Object.entries(counts)
    .map(([name, count]) => ({ name, ...count }))
    .toSorted((a, b) => (b.share ?? 0) - (a.share ?? 0) || b.ended - a.ended)
}

/** How far rollouts are read, as pages are told. */
export function extentOf({ rollouts, of, version, isWhole }: BookRead): RunExtent {
  return { rollouts: rollouts.length, of, version, isWhole }
}

/** What is kept of somebody, made where it is not there; what was not asked for longest gives way. */
function recent<T>(map: Map<string, T>, key: string, make: () => T): T {
  const one = map.get(key) ?? make()
  map.delete(key)
  map.set(key, one)
  for (const oldest of map.keys()) {
    if (map.size <= keptBooks) break
    map.delete(oldest)
  }
  return one
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
