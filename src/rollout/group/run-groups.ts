import { setTimeout as after } from 'node:timers/promises'
import { isPaddockError, sha256, type Id, type Task } from '../../core/index.ts'
import {
  type CountedAttempt,
  type GroupRecord,
  type GroupSpec,
  type HandInAnswer,
  type Lease,
  type NewJob,
  nullCause,
  type RolloutView,
  type RoundView,
  type SettledRound,
  type Store,
} from '../../trajectory/index.ts'
import type { RolloutSummary } from '../contract.ts'
import { groupRewarded } from '../group-rewards.ts'
import { forkParents } from '../fork/parents.ts'
import { isUnverified } from '../work.ts'
import {
  attemptOf,
  type ClaimedForNode,
  type NodeJob,
  nodeNameOf,
  type NodeRun,
  type NodesOfRun,
} from '../nodes/index.ts'
import type { NullLimit } from './null-limit.ts'
import { summaryOf, takeUpMember } from '../resume.ts'
import { runRollout } from '../rollout.ts'
import type { Member, RunParts } from '../run-parts.ts'
import type { SlotState } from './decide.ts'
import { type JobOutcome, JobRunner } from './job-runner.ts'
import { GroupKeeper, type SlotWork } from './keeper.ts'
import { groupStopped, Stopped } from './stopped.ts'

/** A group of a run. */
export interface RunGroup {
  readonly task: Task
  readonly group: GroupRecord
}

/** A group when its run is over. */
export interface EndedGroup extends RunGroup {
  /** Every attempt, by slot and attempt. */
  readonly rollouts: readonly RolloutSummary[]
  /** Null where the run was cancelled before. */
  readonly settled: SettledRound | null
}

/** How a group of a run is filled, beyond what is the run's. */
export interface GroupWork {
  readonly spec: GroupSpec
  /** Whose members are begun first: higher first. */
  readonly priority: number
  /** What is the group's own of what its rollouts share. */
  readonly own: Partial<Pick<RunParts, 'policy' | 'horizon' | 'labels' | 'fork' | 'library'>>
}

export interface RunGroupsOptions {
  readonly infraRetries: number
  /** Groups that have settled are not kept for {@link RunGroups.ended}: a run that stays open has too many of them. */
  readonly forgets?: boolean
  /** Nodes may do its jobs too; null: all are done here. */
  readonly nodes: NodesOfRun | null
  /** Labels of whoever may do them. */
  readonly needs: readonly string[]
  /** Rollouts that have begun and are not yet being verified: work that waits for a verifier keeps new ones from beginning. */
  readonly places: number
  /** Stops the run when too many rollouts have no number; null: nothing does. */
  readonly limit: NullLimit | null
}

interface KnownGroup extends RunGroup, GroupWork {
  /** Its place among the groups of the run. */
  readonly at: number
  readonly attempts: Map<Id, RolloutSummary>
  settled: SettledRound | null
  /** Nobody wants more of its round. */
  cancelled: boolean
  /** Until when its members wait for the node that has the box which they go on from; null: nobody claimed one yet. */
  keptUntil: number | null
}

/** So long members wait for the node that has the box which they go on from. */
const keptMs = 30_000
/** Between two claims of one that waits. */
const keptAgainMs = 1000
/** Between two looks whether nodes still have jobs of a run that has stopped. */
const leasedAgainMs = 1000

/** Faults that another attempt meets again. */
const lasting: ReadonlySet<string> = new Set([
  'IMAGE_BUILD_FAILED',
  'IMAGE_DOCKERFILE_UNSUPPORTED',
  'IMAGE_MISSING',
  'SANDBOX_CAPABILITY',
  'HARNESS_INVALID',
  'HARNESS_UNFIT',
  'ENGINE_INCAPABLE',
  'FORK_REFUSED',
])

/** More than a group can have slots: the order of members is that of their groups, then of their slots. */
const slotsBound = 1_000_000

/**
 * Runs groups to their end: each member is a job in the queue, each group settles once. What an earlier process left is taken
 * up: settled groups stay, jobs that nobody handed in are claimed again. Throws `STORE_*`.
 */
export async function runGroups(
  run: RunParts,
  groups: readonly RunGroup[],
  { spec, ...o }: RunGroupsOptions & { readonly spec: GroupSpec },
): Promise<readonly EndedGroup[]> {
  const work = new RunGroups(run, o)
  try {
    for (const one of groups) await work.add(one, { spec, priority: 0, own: {} })
    work.end()
    await work.run()
  } finally {
    work.close()
  }
  return work.ended
}

/** The groups of a run at work: more may come until {@link RunGroups.end}. */
export class RunGroups implements SlotWork {
  readonly #run: RunParts
  readonly #nodes: NodesOfRun | null
  readonly #needs: readonly string[]
  readonly #infraRetries: number
  readonly #forgets: boolean
  readonly #limit: NullLimit | null
  readonly #groups = new Map<Id, KnownGroup>()
  readonly #keeper: GroupKeeper
  readonly #runner: JobRunner
  /** Attempts by job that ended as `infra` in this process. */
  readonly #tries = new Map<Id, number>()
  #added = 0
  #ending = false

  constructor(run: RunParts, o: RunGroupsOptions) {
    this.#run = run
    this.#nodes = o.nodes
    this.#needs = o.needs
    this.#infraRetries = o.infraRetries
    this.#forgets = o.forgets ?? false
    this.#limit = o.limit
    this.#runner = new JobRunner({
      queue: run.store.queue,
      claim: (...asked) => this.#claim(...asked),
      topic: this.#topic,
      // No name that a node may have: `nameSeparator` is in all of theirs.
      nodeName: `run:${this.#run.runId}`,
      places: o.places,
      newId: run.newId,
      signal: run.signal,
      work: (job, signal, leave) => this.#work(job, signal, leave),
      onEnded: (job, answer) => this.#ended(job, answer),
    })
    this.#keeper = new GroupKeeper({
      store: run.store,
      work: this,
      onSettled: (settled) => this.#settled(settled),
      onFailure: (error) => this.#runner.fail(error),
    })
  }

  /** Jobs of one run are done by whoever runs it. */
  get #topic(): string {
    return `run/${this.#run.runId}`
  }

  /** Opens a group, or takes up what an earlier process left of it. Throws `STORE_*`. */
  async add(one: RunGroup, work: GroupWork): Promise<void> {
    if (this.#groups.has(one.group.id)) return
    const known = {
      ...one,
      ...work,
      at: this.#added,
      attempts: new Map(),
      settled: null,
      cancelled: false,
      keptUntil: null,
    }
    this.#added += 1
    this.#groups.set(one.group.id, known)
    const { group, spec } = known
    const { catalogue } = this.#run.store
    await catalogue.openRound({ groupId: group.id, runId: group.runId, round: 0, spec })
    await this.#takeUpRound(known)
  }

  /** Opens a further round of a group. Throws `ROUND_OPEN` where one goes on. */
  async openRound(one: RunGroup, work: GroupWork): Promise<void> {
    const { group } = one
    const { catalogue } = this.#run.store
    const round = (await catalogue.rounds(group.id)).length
    await catalogue.openRound({ groupId: group.id, runId: group.runId, round, spec: work.spec })
    const at = this.#added
    this.#added += 1
    const known = { ...one, ...work, at, attempts: new Map(), settled: null, cancelled: false, keptUntil: null }
    this.#groups.set(group.id, known)
    await this.#takeUpRound(known)
  }

  /** Nobody wants more of a group: what goes on is stopped and kept. Resolves with its round if that has settled by this. */
  async cancel(groupId: Id): Promise<SettledRound | null> {
    const known = this.#groups.get(groupId)
    if (known !== undefined) known.cancelled = true
    return this.#keeper.advance(groupId, true)
  }

  /** Something was said of a member. */
  async advance(groupId: Id): Promise<void> {
    await this.#keeper.advance(groupId)
  }

  /** Nobody wants more of a slot's attempt. */
  async stopSlot(groupId: Id, slot: number, why: string): Promise<void> {
    const slots = (await this.#run.store.catalogue.rounds(groupId)).flatMap((round) => round.slots)
    const ids = slots.flatMap((one) => (one.slot === slot ? [one.jobId] : []))
    await this.#run.store.queue.cancel({ ids })
    this.#runner.stop(ids, new Stopped(why))
    await this.#keeper.advance(groupId)
  }

  /** No more groups come. */
  end(): void {
    this.#ending = true
    this.#runner.wake()
  }

  /**
   * Works until {@link RunGroups.end} was called and all groups have settled, or the run's signal aborts. Throws `STORE_*`, and `RUN_NULL_SHARE`
   * when what was under way has ended.
   */
  async run(): Promise<void> {
    const { runId, signal, store, onProgress } = this.#run
    if (this.#needs.length > 0) onProgress({ type: 'note', line: `left to nodes with ${this.#needs.join(', ')}` })
    this.#nodes?.jobs.add(this.#forNodes(this.#nodes))
    try {
      await this.#runner.run(
        () => this.#isStopped || (this.#ending && [...this.#groups.values()].every(({ settled }) => settled !== null)),
      )
      if (signal.aborted || !this.#isStopped) return
      while (this.#nodes !== null && !signal.aborted && (await store.queue.depth(this.#topic)).leased > 0) {
        await after(leasedAgainMs)
      }
      await store.recorder.flush()
    } finally {
      this.#nodes?.jobs.remove(runId, signal.aborted)
    }
    const refusal = this.#limit?.refusal() ?? null
    if (refusal !== null) throw refusal
  }

  /** Too many rollouts have no number: none begins any more. */
  get #isStopped(): boolean {
    return this.#limit?.isOver ?? false
  }

  #keep(known: KnownGroup, one: RolloutSummary): void {
    known.attempts.set(one.rolloutId, one)
    if (!one.retried) this.#limit?.note(countedSummary(one))
  }

  /** No deadline wakes it any more. */
  close(): void {
    this.#keeper.close()
  }

  get ended(): readonly EndedGroup[] {
    return [...this.#groups.values()].map(({ task, group, attempts, settled }) => ({
      task,
      group,
      settled,
      rollouts: [...attempts.values()].toSorted((a, b) => a.slot - b.slot || a.attempt - b.attempt),
    }))
  }

  async states({ groupId, slots }: RoundView): Promise<readonly SlotState[]> {
    const { queue, catalogue } = this.#run.store
    const jobs = new Map((await queue.jobs({ ids: slots.map(({ jobId }) => jobId) })).map((job) => [job.id, job]))
    const rollouts = await catalogue.rollouts({ groupId, slots: slots.map(({ slot }) => slot) })
    return slots.map(({ slot, jobId }) => {
      const rollout = rollouts.findLast((one) => one.slot === slot) ?? null
      const state = jobs.get(jobId)?.state ?? 'ready'
      const over = state !== 'ready' && state !== 'leased'
      return { slot, rollout, over, verifying: rollout !== null && isUnverified(rollout), verdictFromOutside: false }
    })
  }

  async topUp(round: RoundView, count: number): Promise<boolean> {
    if (this.#run.signal.aborted || this.#isStopped) return false
    await this.#openSlots(round, count)
    return true
  }

  async stop({ slots }: RoundView, why: string): Promise<void> {
    const ids = slots.map(({ jobId }) => jobId)
    await this.#run.store.queue.cancel({ ids })
    this.#runner.stop(ids, groupStopped(why))
  }

  async compare({ groupId }: RoundView): Promise<void> {
    const known = this.#groups.get(groupId)
    if (known === undefined) return
    for (const one of await groupRewarded(this.#run, known, [...known.attempts.values()])) {
      this.#keep(known, one)
    }
  }

  /** Claims here and by nodes take turns with hand-ins. */
  async #claim(...asked: Parameters<Store['queue']['claim']>): Promise<readonly Lease[]> {
    const { runId, store } = this.#run
    if (this.#isStopped) return []
    if (this.#nodes === null) return store.queue.claim(...asked)
    const { jobs } = this.#nodes
    return jobs.claiming(runId, async () =>
      this.#whereKept(await jobs.overtake(await store.queue.claim(...asked)), null),
    )
  }

  #forNodes({ tasks, order, jobs }: NodesOfRun): NodeRun {
    const { runId, store, onProgress } = this.#run
    return {
      runId,
      tasks,
      order: async () => ({ run: await store.catalogue.run(runId), ...order }),
      claim: async (session, request) => {
        if (this.#isStopped) return { jobs: [], someHere: false }
        const claimed = await jobs.overtake(await store.queue.claim(this.#topic, session, request))
        return this.#forNode(await this.#whereKept(claimed, session))
      },
      parents: async (groupId) => {
        const fork = this.#groups.get(groupId)?.spec.fork ?? null
        return fork === null ? [] : forkParents(store.recorder, fork.rolloutId)
      },
      next: (jobId, { end }, fault) => {
        const tries = this.#tries.get(jobId) ?? 0
        this.#tries.set(jobId, tries + 1)
        return end === 'infra' && tries < this.#infraRetries && !lasting.has(fault ?? '') ? 'again' : 'done'
      },
      ended: (rolloutId, next) => this.#handedIn(rolloutId, next === 'again'),
      note: (line) => onProgress({ type: 'note', line }),
    }
  }

  /** A box that was kept is on one machine: what goes on from it is left to that for a while. `session`: of who claimed; null: it is done here. */
  async #whereKept(claimed: readonly Lease[], session: Id | null): Promise<readonly Lease[]> {
    const { store, clock } = this.#run
    const taken: Lease[] = []
    for (const job of claimed) {
      const known = job.groupId === null ? undefined : this.#groups.get(job.groupId)
      const fork = known?.spec.fork ?? null
      if (known === undefined || fork === null || fork.way === 'replay') {
        taken.push(job)
        continue
      }
      const { labels } = await store.catalogue.rollout(fork.rolloutId)
      const claims = session === null ? null : await store.queue.session(session)
      const isThere = (labels['node'] ?? null) === (claims === null ? null : nodeNameOf(claims.name))
      known.keptUntil ??= clock.monotonic() + keptMs
      if (isThere || clock.monotonic() >= known.keptUntil) taken.push(job)
      else {
        await store.queue.giveBack(job, 'drain', keptAgainMs)
        // What stands behind it need not wait for it.
        this.#wake()
        setTimeout(() => this.#wake(), keptAgainMs + 1).unref()
      }
    }
    return taken
  }

  /** Jobs for a node. What an earlier process left of a member, what goes on from a rollout that has not ended, and a link of a chain are done here. */
  async #forNode(claimed: readonly Lease[]): Promise<ClaimedForNode> {
    const { queue, catalogue } = this.#run.store
    const jobs: Omit<NodeJob, 'order'>[] = []
    let someHere = false
    for (const job of claimed) {
      const known = job.groupId === null ? undefined : this.#groups.get(job.groupId)
      if (known === undefined) {
        await queue.giveBack(job, 'drain')
        continue
      }
      // Written by #job.
      const { slot } = job.payload as { readonly slot: number }
      const { task, group, spec, at } = known
      const before = await catalogue.rollouts({ groupId: group.id, slots: [slot] })
      const parent = spec.fork === null ? null : await catalogue.rollout(spec.fork.rolloutId)
      if (parent?.end === null || spec.library !== undefined || counts(before.at(-1))) {
        this.#runner.adopt(job)
        someHere = true
        continue
      }
      const { jobId, session, token } = job
      const place = at * slotsBound + slot
      jobs.push({
        lease: { jobId, session, token },
        group,
        spec,
        task: task.digest,
        slot,
        attempt: attemptOf({ token }),
        place,
        parents: parent === null ? [] : await forkParents(this.#run.store.recorder, parent.id),
      })
    }
    return { jobs, someHere }
  }

  async #handedIn(rolloutId: Id, retried: boolean): Promise<void> {
    const rollout = await this.#run.store.catalogue.rollout(rolloutId)
    const known = this.#groups.get(rollout.groupId)
    if (known === undefined) return
    if (isUnverified(rollout)) return this.#runner.wake()
    const summary = summaryOf(rollout, known, retried)
    this.#keep(known, summary)
    this.#run.onProgress({ type: 'ended', rollout: summary })
    if (retried) this.#runner.wake()
    // Its node is answered meanwhile.
    this.#keeper.advance(rollout.groupId, known.cancelled).catch((error: unknown) => this.#runner.fail(error))
  }

  async #takeUpRound(known: KnownGroup): Promise<void> {
    const { catalogue, queue } = this.#run.store
    const { group } = known
    const round = (await catalogue.rounds(group.id)).at(-1)
    if (round === undefined) return
    if (round.settled !== null && this.#forgets) {
      this.#groups.delete(group.id)
      return
    }
    const { n, over } = round.spec
    if (round.settled === null) {
      await queue.enqueue(
        this.#topic,
        round.slots.map(({ jobId, slot }) => this.#job(round, jobId, slot)),
      )
      if (round.slots.length < n + over) await this.#openSlots(round, n + over - round.slots.length)
      this.#wake()
    }
    for (const { slot, over: isOver } of await this.states(round)) if (isOver) await this.#takeUp(known, slot)
    await this.#keeper.advance(group.id)
  }

  async #openSlots(round: RoundView, count: number): Promise<void> {
    const { catalogue, queue } = this.#run.store
    const asked = Array.from({ length: count }, () => ({ jobId: this.#run.newId(), key: null }))
    const opened = await catalogue.openSlots(round.groupId, asked)
    await queue.enqueue(
      this.#topic,
      opened.map(({ jobId, slot }) => this.#job(round, jobId, slot)),
    )
    this.#wake()
  }

  /** There may be something to claim, or all is over. */
  #wake(): void {
    this.#runner.wake()
    this.#nodes?.jobs.waiting.ring()
  }

  #job({ groupId, runId }: RoundView, id: Id, slot: number): NewJob {
    const priority = this.#groups.get(groupId)?.priority ?? 0
    return { id, payload: { slot }, runId, groupId, priority, needs: { labels: this.#needs } }
  }

  async #work(job: Lease, signal: AbortSignal, leave: () => void): Promise<JobOutcome> {
    const known = job.groupId === null ? undefined : this.#groups.get(job.groupId)
    if (known === undefined) return { next: 'back' }
    // Written by #job.
    const { slot } = job.payload as { readonly slot: number }
    const { run, member, before, last } = await this.#takeUp(known, slot)
    if (last !== null) return this.#outcome(last, false)
    const { summary: made, fault } = await runRollout(
      { ...run, signal },
      member,
      (before.at(-1)?.attempt ?? -1) + 1,
      leave,
    )
    // Stopped by its group while a verifier worked on it: its verdict comes late, unless the deadline of the group is over.
    const isOver = signal.reason instanceof Stopped && signal.reason.atDeadline
    const left = made.unverified && !run.signal.aborted && !isOver
    const summary = left ? ((await this.#takeUp(known, slot)).last ?? made) : made
    const tries = this.#tries.get(job.jobId) ?? 0
    const again = summary.end === 'infra' && tries < this.#infraRetries && !isLasting(fault) && !signal.aborted
    this.#tries.set(job.jobId, tries + 1)
    const told = { ...summary, retried: again }
    this.#keep(known, told)
    if (!left) run.onProgress({ type: 'ended', rollout: told })
    return this.#outcome(told, again)
  }

  /** What a run that is cancelled did not finish goes back, for whoever goes on with it. */
  #outcome(one: RolloutSummary, again: boolean): JobOutcome {
    if (this.#run.signal.aborted && (one.unverified || one.end === 'cancelled')) return { next: 'back' }
    return { next: again ? 'again' : 'done', digest: sha256(`${one.rolloutId}\0${one.end}`) }
  }

  /** What there is of a slot. `last`: an attempt that counts. */
  async #takeUp(
    known: KnownGroup,
    slot: number,
  ): Promise<{
    readonly run: RunParts
    readonly member: Member
    readonly before: readonly RolloutView[]
    readonly last: RolloutSummary | null
  }> {
    const { task, group, at, spec } = known
    const member = { task, group, slot, deadlineMs: spec.deadlineMs, order: at * slotsBound + slot }
    const before = await this.#run.store.catalogue.rollouts({ groupId: group.id, slots: [slot] })
    const run = { ...this.#run, ...known.own }
    const { summaries, over } = await takeUpMember(run, member, before)
    for (const one of summaries) if (!known.attempts.has(one.rolloutId) || over) this.#keep(known, one)
    return { run, member, before, last: over ? (summaries.at(-1) ?? null) : null }
  }

  async #ended({ groupId }: Lease, answer: HandInAnswer | null): Promise<void> {
    if (answer === null || (answer.accepted && answer.state === 'ready')) this.#wake()
    if (answer === null || groupId === null) return
    await this.#keeper.advance(groupId, this.#groups.get(groupId)?.cancelled ?? false)
  }

  /** A run waits for verdicts that come late, so it says so. */
  #tellLate({ task }: KnownGroup, { members, stoppedBy }: SettledRound): void {
    const late = members.filter(({ out }) => out === 'late').length
    if (late === 0) return
    const what =
      stoppedBy === 'deadline'
        ? `${late} of its rollouts are left unverified`
        : `${late} of its rollouts are still being verified`
    this.#run.onProgress({
      type: 'note',
      line: `the group of ${task.name} has settled (${stoppedBy ?? 'whole'}): ${what}`,
    })
  }

  #settled(settled: SettledRound): void {
    const known = this.#groups.get(settled.groupId)
    if (known !== undefined) {
      if (known.settled === null) this.#tellLate(known, settled)
      known.settled = settled
    }
    if (this.#forgets) this.#groups.delete(settled.groupId)
    this.#runner.wake()
  }
}

/** Whether an attempt is there that counts, or may when it is verified. */
function counts(last: RolloutView | undefined): boolean {
  if (last === undefined) return false
  return isUnverified(last) || (last.end !== null && last.end !== 'infra' && last.end !== 'cancelled')
}

function isLasting(fault: unknown): boolean {
  return isPaddockError(fault) && lasting.has(fault.code)
}

/** An attempt of a run at work, as it is counted. */
function countedSummary(one: RolloutSummary): CountedAttempt {
  const { groupId, slot, task, end, taints, verdict, unverified } = one
  const isOpen = unverified || end === 'cancelled' || verdict?.status === 'pending'
  const outcome = isOpen ? null : { cause: nullCause({ end, taints, verdict }) }
  return { groupId, slot, task: task.name, versions: [], outcome, emptyTools: false }
}
