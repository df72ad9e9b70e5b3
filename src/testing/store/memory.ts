import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Id, newId, sha256, type Task, type Verdict } from '../../core/index.ts'
import type { GroupSpec, MemoryQuery, SettledMember, TaskMemory } from '../../trajectory/index.ts'
import type { TrainerBookUnderTest } from './trainer.ts'

/** What a catalogue remembers of tasks, whichever driver it has. Each test has a run and tasks of its own. */
export function memoryContract(name: string, make: () => Promise<TrainerBookUnderTest>): void {
  describe(`memory contract: ${name}`, () => {
    let made: TrainerBookUnderTest
    beforeAll(async () => {
      made = await make()
    })
    afterAll(async () => made.close())

    const newRun = async (config: unknown = {}): Promise<Id> => {
      const id = newId()
      await made.catalogue.putRun({ id, name: 'r', createdAt: 1, config })
      return id
    }
    const newTask = (split = 'train'): Task => {
      const called = newId()
      return { digest: sha256(called), name: called, environment: 't', instruction: '', split, data: {}, source: '' }
    }
    /** A group of one settled round with these members; resolves with its rollouts. */
    const settle = async (
      runId: Id,
      task: Task,
      members: readonly Member[],
      more: { readonly fork?: boolean; readonly harness?: string; readonly variant?: string } = {},
    ): Promise<readonly Id[]> => {
      const { catalogue } = made
      const groupId = newId()
      await catalogue.putTask(task)
      const promptVariant = more.variant ?? 'plain'
      await catalogue.putGroup({ id: groupId, runId, taskDigest: task.digest, promptVariant, createdAt: 1 })
      const fork = { rolloutId: newId(), callId: newId(), way: 'replay', onDivergence: 'refuse' } as const
      const whole = { ...spec, fork: more.fork === true ? fork : null }
      await catalogue.openRound({ groupId, runId, round: 0, spec: whole })
      const listed: SettledMember[] = []
      for (const [slot, { tries = 1, weights = [], turns = 1, tokens = 10, ...how }] of members.entries()) {
        let rolloutId: Id = ''
        for (let attempt = 0; attempt < tries; attempt += 1) {
          rolloutId = newId()
          const harness = more.harness ?? 'shell'
          await catalogue.putRollout({ id: rolloutId, runId, groupId, slot, attempt, harness, createdAt: 1 })
        }
        const { reward, out = reward === null ? 'no_number' : null } = how
        if (reward !== null) await catalogue.appendVerdict(verdictOf(rolloutId, reward))
        const verdict = reward === null ? null : ({ id: rolloutId, status: 'scored', reward } as const)
        const about = { rolloutId, slot, attempt: tries - 1, end: 'completed', cut: null } as const
        listed.push({ ...about, out, verdict, sampledTokens: tokens, turns, weights })
      }
      const none = { members: 0, sampledTokens: 0 }
      const counts = { usable: 0, censored: none, carried: none, neverBegan: 0 }
      const settled = {
        groupId,
        runId,
        round: 0,
        state: 'settled',
        stoppedBy: null,
        members: listed,
        ...counts,
      } as const
      await catalogue.settleRound(settled)
      await catalogue.settleRound(settled)
      return listed.map(({ rolloutId }) => rolloutId)
    }
    const read = (runId: Id | undefined, more: Partial<MemoryQuery> = {}) =>
      made.catalogue.memory({
        ...(runId === undefined ? {} : { runId }),
        by: [],
        sort: 'pass_rate',
        descending: false,
        limit: 100,
        after: null,
        ...more,
      })
    const one = async (runId: Id, more: Partial<MemoryQuery> = {}): Promise<TaskMemory> => {
      const { tasks } = await read(runId, more)
      expect(tasks).toHaveLength(1)
      const [found] = tasks
      if (found === undefined) throw new Error('nothing is remembered')
      return found
    }

    it('counts rewards, nulls, infrastructure and what was stopped apart, each attempt once', async () => {
      const runId = await newRun()
      await settle(runId, newTask(), [
        { reward: 1, tokens: 20, turns: 3 },
        { reward: 0.5, tokens: 10, turns: 1 },
        { reward: null, tokens: 6, turns: 2 },
        { reward: null, out: 'infra', tries: 3, tokens: 500 },
        { reward: 1, out: 'tainted', tokens: 500 },
        { reward: null, out: 'censored', tokens: 500 },
      ])
      expect(await one(runId)).toMatchObject({
        attempts: 8,
        numbers: 2,
        passed: 1,
        meanReward: 0.75,
        sdReward: 0.25,
        nulls: 1,
        infra: 4,
        stopped: 1,
        meanTokens: 12,
        mostTokens: 20,
        meanTurns: 2,
        runId: null,
        harness: null,
        version: null,
      })
    })

    it('has nothing of evaluations, held-out splits and forks', async () => {
      const [trained, evaluated] = [await newRun(), await newRun({ eval: { of: 'x' } })]
      for (const split of ['validation', 'test']) await settle(trained, newTask(split), [{ reward: 1 }])
      await settle(trained, newTask(), [{ reward: 1 }], { fork: true })
      const task = newTask()
      await settle(evaluated, task, [{ reward: 1 }])
      expect(await read(trained)).toEqual({ tasks: [], next: null })
      expect(await read(evaluated)).toEqual({ tasks: [], next: null })
      expect(await read(undefined, { taskDigests: [task.digest] })).toEqual({ tasks: [], next: null })
    })

    it('follows a verdict that comes late', async () => {
      const runId = await newRun()
      const [known, unknown, broken] = await settle(runId, newTask(), [
        { reward: 1 },
        { reward: null, out: 'late' },
        { reward: null, out: 'infra' },
      ])
      expect(await one(runId)).toMatchObject({ numbers: 1, passed: 1, nulls: 1, infra: 1 })
      for (const rollout of [known, unknown, broken])
        await made.catalogue.appendVerdict(verdictOf(rollout ?? '', 0.5, 'late'))
      expect(await one(runId)).toMatchObject({
        attempts: 3,
        numbers: 2,
        passed: 0,
        meanReward: 0.5,
        nulls: 0,
        infra: 1,
      })
    })

    it('counts a member that was late for its round once, as the later round lists it', async () => {
      const runId = await newRun()
      const [rolloutId = ''] = await settle(runId, newTask(), [{ reward: null, out: 'late' }])
      const { groupId } = await made.catalogue.rollout(rolloutId)
      await made.catalogue.openRound({ groupId, runId, round: 1, spec })
      const none = { members: 0, sampledTokens: 0 }
      const verdict = { id: newId(), status: 'scored', reward: 1 } as const
      const about = { slot: 0, attempt: 0, end: 'completed', out: null, cut: null, sampledTokens: 10 } as const
      const counts = { usable: 1, censored: none, carried: none, neverBegan: 0 }
      const members = [{ ...about, rolloutId, verdict }]
      await made.catalogue.settleRound({
        groupId,
        runId,
        round: 1,
        state: 'settled',
        stoppedBy: null,
        members,
        ...counts,
      })
      expect(await one(runId)).toMatchObject({ attempts: 1, numbers: 1, passed: 1, nulls: 0 })
    })

    it('is told apart by run, harness, variant and weights, over runs or in one', async () => {
      const [a, b] = [await newRun(), await newRun()]
      const task = newTask()
      const taskDigests = [task.digest]
      await settle(a, task, [
        { reward: 1, weights: ['w1', 'w2'] },
        { reward: 0, weights: ['w2'] },
      ])
      await settle(a, task, [{ reward: 0 }], { harness: 'codex' })
      await settle(b, task, [{ reward: 1 }], { variant: 'hinted' })
      const all = { taskDigests, sort: 'attempts' } as const
      expect((await read(undefined, all)).tasks.map((found) => found.attempts)).toEqual([4])
      const split = async (by: MemoryQuery['by'], more: Partial<MemoryQuery> = {}) =>
        (await read(undefined, { ...all, by, ...more })).tasks.map(({ runId, harness, variant, version, attempts }) => [
          runId ?? harness ?? variant ?? version,
          attempts,
        ])
      expect(await split(['run'])).toEqual([
        [b, 1],
        [a, 3],
      ])
      expect(await split(['harness'])).toEqual([
        ['codex', 1],
        ['shell', 3],
      ])
      expect(await split(['variant'], { variant: 'hinted' })).toEqual([['hinted', 1]])
      const versions = await read(a, { ...all, by: ['version'], harness: 'shell' })
      expect(versions.tasks.map(({ version, passed }) => [version?.label, passed])).toEqual([
        ['w1', 1],
        ['w2', 0],
      ])
    })

    it('counts what a trainer did with rows, without what it undid, and without weights it went back behind', async () => {
      const runId = await newRun()
      const task = newTask()
      const attach = (resumeStep: number | null) => made.trainer.attach(runId, { resumeStep, consumer: null })
      await attach(null)
      const [first] = await settle(runId, task, [{ reward: 1, weights: ['w0'] }])
      const train = async (rollout: Id | undefined, step: number, incarnation = 1) => {
        const ids = [newId()]
        const [claim] = await made.trainer.claim(runId, { incarnation, consumer: 'c', maxGroups: 1, leaseMs: 1e5, ids })
        const row = `${rollout}:0`
        await made.trainer.handOut(claim?.id ?? '', [{ rowId: row, segmentIds: [newId()], labels: [] }])
        const said = { row, step, use: 0, tokens: null, advantage: 1, rewardUsed: 1, reason: null } as const
        const dispositions = [{ ...said, claimId: claim?.id ?? '', outcome: 'used' as const }]
        await made.trainer.dispose(runId, { incarnation, dispositions })
        await made.trainer.dispose(runId, { incarnation, dispositions })
      }
      await train(first, 1)
      const usedFirst = (await one(runId)).usedAt
      await made.trainer.announce(runId, { incarnation: 1, ordinal: 1, label: 'w1', step: 1 })
      const [second] = await settle(runId, task, [{ reward: 0, weights: ['w1'] }])
      await train(second, 2)
      const { usedAt, lastAt } = await one(runId)
      expect(usedAt).toBeGreaterThanOrEqual(lastAt)
      const unusedSince = async (at: number) => (await read(runId, { unusedSince: at })).tasks.length
      expect([await unusedSince(usedAt ?? 0), await unusedSince((usedAt ?? 0) + 1)]).toEqual([0, 1])
      expect(await one(runId)).toMatchObject({ attempts: 2, passed: 1, uses: { used: 2, stale: 0 } })
      expect(await one(runId, { versions: { min: 1, max: null } })).toMatchObject({ attempts: 1, passed: 0 })
      await attach(1)
      expect(await one(runId)).toMatchObject({ attempts: 2, uses: { used: 1 }, usedAt: usedFirst })
      await attach(null)
      expect(await one(runId)).toMatchObject({ attempts: 1, passed: 1, uses: { used: 0 }, usedAt: null })
      expect(await unusedSince(0)).toBe(0)
      expect(await unusedSince(1)).toBe(1)
    })

    it('is found by bounds, in order, a page at a time', async () => {
      const runId = await newRun()
      const rates = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0], [1, 1, 1], [null]]
      const tasks: Task[] = []
      for (const rewards of rates) {
        const task = newTask()
        tasks.push(task)
        await settle(
          runId,
          task,
          rewards.map((reward) => ({ reward })),
        )
      }
      const found = async (more: Partial<MemoryQuery>) =>
        (await read(runId, more)).tasks.map(({ taskDigest }) => tasks.findIndex(({ digest }) => digest === taskDigest))
      expect(await found({})).toEqual([0, 1, 2, 3, 4])
      expect(await found({ passRate: { min: 0.2, max: 0.8 } })).toEqual([1, 2])
      expect(await found({ passRate: { min: null, max: 0.25 } })).toEqual([0, 1])
      expect(await found({ attempts: { min: 4, max: null } })).toEqual([0, 1])
      expect(await found({ uses: { min: 1, max: null } })).toEqual([])
      for (const sort of ['pass_rate', 'attempts', 'uses', 'last'] as const) {
        for (const descending of [false, true]) {
          const whole = await found({ sort, descending })
          const paged: number[] = []
          let after: string | null = null
          do {
            const page = await read(runId, { sort, descending, limit: 2, after })
            paged.push(...page.tasks.map((line) => tasks.findIndex(({ digest }) => digest === line.taskDigest)))
            after = page.next
          } while (after !== null)
          expect(paged).toEqual(whole)
          expect(new Set(whole)).toEqual(new Set([0, 1, 2, 3, 4]))
        }
      }
      const { next } = await read(runId, { limit: 2 })
      await expect(read(runId, { sort: 'last', after: next })).rejects.toMatchObject({ code: 'BODY_INVALID_SHAPE' })
      await expect(read(undefined, { versions: { min: 1, max: 2 } })).rejects.toMatchObject({
        code: 'BODY_INVALID_SHAPE',
      })
    })
  })
}

interface Member {
  readonly reward: number | null
  readonly out?: SettledMember['out']
  /** Attempts in its slot. */
  readonly tries?: number
  readonly weights?: readonly string[]
  readonly tokens?: number
  readonly turns?: number
}

const spec: GroupSpec = {
  n: 1,
  over: 0,
  minUsable: 1,
  stopWhen: { kind: 'deadline' },
  carry: false,
  topUp: 0,
  deadlineMs: null,
  labels: {},
  horizon: null,
  onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify' },
  fork: null,
}

function verdictOf(rolloutId: Id, reward: number, by: 'verifier' | 'late' = 'verifier'): Verdict {
  return {
    id: newId(),
    rolloutId,
    at: 9,
    status: 'scored',
    reward,
    components: {},
    steps: [],
    evidence: '',
    artifacts: [],
    verifier: { id: 'v', version: '1', sha256: sha256('v') },
    trust: 'separate',
    by,
    costTokens: 0,
    supersedes: null,
  }
}
