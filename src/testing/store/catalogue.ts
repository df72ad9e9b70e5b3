import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId, sha256, type Task, type Verdict } from '../../core/index.ts'
import type {
  Catalogue,
  CatalogueReader,
  GroupSpec,
  RolloutRecord,
  RolloutWork,
  RoundRecord,
  SettledRound,
} from '../../trajectory/index.ts'

/** A fresh, empty catalogue. */
export interface CatalogueUnderTest {
  readonly catalogue: Catalogue
  /** Opens the same catalogue the way another process would. */
  reader(): Promise<CatalogueReader>
  close(): Promise<void>
}

/** What every {@link Catalogue} driver must do. */
export function catalogueContract(name: string, make: () => Promise<CatalogueUnderTest>): void {
  describe(`catalogue contract: ${name}`, () => {
    let made: CatalogueUnderTest
    let catalogue: Catalogue
    beforeEach(async () => {
      made = await make()
      catalogue = made.catalogue
    })
    afterEach(async () => made.close())

    const task: Task = {
      digest: sha256('task'),
      name: 'one',
      environment: 'terminal',
      instruction: 'do ä',
      split: 'train',
      data: { deep: [1, null] },
      source: 'a',
    }
    const rollout = async (): Promise<RolloutRecord> => {
      const run = { id: newId(), name: 'r', createdAt: 1, config: { n: 4 } }
      const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: '', createdAt: 2 }
      const record: RolloutRecord = {
        id: newId(),
        runId: run.id,
        groupId: group.id,
        slot: 0,
        attempt: 0,
        harness: 'shell',
        createdAt: 3,
      }
      await catalogue.putTask(task)
      await catalogue.putRun(run)
      await catalogue.putGroup(group)
      await catalogue.putRollout(record)
      return record
    }
    const verdict = (rolloutId: string, reward: number, supersedes: string | null): Verdict => ({
      id: newId(),
      rolloutId,
      at: 9,
      status: 'scored',
      reward,
      components: { tests: reward },
      steps: [],
      evidence: 'ok',
      artifacts: [],
      verifier: { id: 'v', version: '1', sha256: sha256('v') },
      trust: 'separate',
      by: 'verifier',
      costTokens: 0,
      supersedes,
    })

    const work: RolloutWork = {
      at: 15,
      end: 'agent_timeout',
      detail: 'after 10 s',
      fault: null,
      artifacts: [{ path: '/workspace', sha256: sha256('a'), sizeBytes: 1 }],
      shared: false,
      answered: true,
      calls: 2,
      sampledTokens: 30,
      agentMs: 900,
    }

    it('gives a rollout back with all that was appended to it, to every reader', async () => {
      const record = await rollout()
      await catalogue.startRollout(record.id, 10)
      await catalogue.putWork(record.id, work)
      await catalogue.endRollout(record.id, 20, 'agent_timeout', 'after 10 s')
      await catalogue.taint(record.id, 'engine 502')
      await catalogue.taint(record.id, 'engine 502')
      await catalogue.label(record.id, 'split', 'a')
      await catalogue.label(record.id, 'split', 'b')
      const first = verdict(record.id, 0, null)
      const second = verdict(record.id, 1, first.id)
      await catalogue.appendVerdict(first)
      await catalogue.appendVerdict(second)
      const expected = {
        ...record,
        taskDigest: task.digest,
        work,
        startedAt: 10,
        endedAt: 20,
        end: 'agent_timeout',
        endDetail: 'after 10 s',
        taints: ['engine 502'],
        verdicts: [first, second],
        labels: { split: 'b' },
      }
      expect(await catalogue.rollout(record.id)).toEqual(expected)
      const reader = await made.reader()
      expect(await reader.rollout(record.id)).toEqual(expected)
      expect(await reader.task(task.digest)).toEqual(task)
      await reader.close()
    })

    it('has nothing to say of a rollout that has not begun', async () => {
      const record = await rollout()
      expect(await catalogue.rollout(record.id)).toMatchObject({
        startedAt: null,
        endedAt: null,
        end: null,
        endDetail: '',
        verdicts: [],
      })
    })

    it('lists by run, group, task and limit', async () => {
      const one = await rollout()
      const two = { ...one, id: newId(), slot: 1 }
      await catalogue.putRollout(two)
      const other = await rollout()
      const found = async (filter: Parameters<Catalogue['rollouts']>[0]): Promise<readonly string[]> =>
        (await catalogue.rollouts(filter)).map((view) => view.id)
      expect(await found({ runId: one.runId })).toEqual([one.id, two.id])
      expect(await found({ groupId: other.groupId })).toEqual([other.id])
      expect(await found({ taskDigest: task.digest, limit: 2 })).toEqual([one.id, two.id])
      expect(await found({ taskDigest: sha256('other') })).toEqual([])
      expect((await catalogue.groups(one.runId)).map((group) => group.id)).toEqual([one.groupId])
      expect((await catalogue.runs(1)).length).toBe(1)
      expect(await catalogue.tasks()).toEqual([task])
    })

    it('takes the same record twice and refuses another under its id', async () => {
      const record = await rollout()
      await catalogue.putRollout(record)
      await expect(catalogue.putRollout({ ...record, harness: 'other' })).rejects.toMatchObject({
        code: 'STORE_CONFLICT',
      })
      await expect(catalogue.putRollout({ ...record, id: newId() })).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      expect(await catalogue.rollouts({})).toHaveLength(1)
      expect(await catalogue.rollouts({ slots: [3, 0] })).toHaveLength(1)
      expect(await catalogue.rollouts({ slots: [1] })).toEqual([])
    })

    it('lets only the first end count', async () => {
      const { id } = await rollout()
      await catalogue.endRollout(id, 20, 'completed', '')
      await catalogue.endRollout(id, 20, 'completed', '')
      await expect(catalogue.endRollout(id, 21, 'infra', '')).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      expect((await catalogue.rollout(id)).end).toBe('completed')
    })

    it('keeps the work of an agent once, and none behind the end', async () => {
      const { id } = await rollout()
      await catalogue.putWork(id, work)
      await catalogue.putWork(id, work)
      expect(await catalogue.rollout(id)).toMatchObject({ work, end: null })
      await expect(catalogue.putWork(id, { ...work, calls: 3 })).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      const other = await rollout()
      await catalogue.endRollout(other.id, 20, 'infra', '')
      await expect(catalogue.putWork(other.id, work)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      await expect(catalogue.putWork(newId(), work)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    })

    it('refuses what hangs on nothing', async () => {
      const { id } = await rollout()
      await expect(catalogue.rollout(newId())).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(catalogue.taint(newId(), 'x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(catalogue.appendVerdict(verdict(newId(), 1, null))).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(catalogue.appendVerdict(verdict(id, 1, newId()))).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      await expect(
        catalogue.putGroup({ id: newId(), runId: newId(), taskDigest: 'x', promptVariant: '', createdAt: 1 }),
      ).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
    })

    const spec: GroupSpec = {
      n: 2,
      over: 1,
      minUsable: 1,
      stopWhen: { kind: 'usable', count: 2 },
      carry: false,
      topUp: 0,
      deadlineMs: 60_000,
      labels: { set: 'a' },
      horizon: 8,
      fork: null,
      onCut: { horizon: 'verify', budget: 'zero', context_overflow: 'verify', agent_timeout: 'null' },
    }
    const roundOf = ({ groupId, runId }: RolloutRecord, round = 0): RoundRecord => ({ groupId, runId, round, spec })
    const settledOf = (record: RolloutRecord, more: Partial<SettledRound> = {}): SettledRound => ({
      groupId: record.groupId,
      runId: record.runId,
      round: 0,
      state: 'settled',
      stoppedBy: null,
      members: [
        {
          rolloutId: record.id,
          slot: 0,
          attempt: 0,
          end: 'completed',
          out: 'late',
          verdict: null,
          cut: null,
          sampledTokens: 7,
        },
      ],
      usable: 0,
      censored: { members: 0, sampledTokens: 0 },
      carried: { members: 0, sampledTokens: 0 },
      neverBegan: 0,
      ...more,
    })
    const slot = (key: string | null = null) => ({ jobId: newId(), key })
    const kinds = async (runId: string) =>
      (await catalogue.runEvents(runId, { after: 0, limit: 99 })).map(({ kind }) => kind)

    describe('rounds of a group', () => {
      it('take over slots that the round before left going on, until they are in a list', async () => {
        const record = await rollout()
        const carrying = (round: number) => ({ ...roundOf(record, round), spec: { ...spec, carry: true } })
        await catalogue.openRound(carrying(0))
        const [listed, carried] = await catalogue.openSlots(record.groupId, [slot(), slot()])
        await catalogue.settleRound(settledOf(record))
        await catalogue.openRound(carrying(1))
        const [own] = await catalogue.openSlots(record.groupId, [slot()])
        expect(own?.slot).toBe(2)
        await catalogue.settleRound(settledOf(record, { round: 1, members: [], stoppedBy: 'cancelled' }))
        await catalogue.openRound(carrying(2))
        const rounds = await (await made.reader()).rounds(record.groupId)
        expect(rounds.map(({ slots }) => slots)).toEqual([[listed, carried], [carried, own], []])
      })

      it('open once, with their slots numbered through all of them, for every reader', async () => {
        const record = await rollout()
        await catalogue.openRound(roundOf(record))
        await catalogue.openRound(roundOf(record))
        const first = await catalogue.openSlots(record.groupId, [slot(), slot()])
        const [more] = await catalogue.openSlots(record.groupId, [slot()])
        await catalogue.settleRound(settledOf(record))
        await catalogue.openRound(roundOf(record, 1))
        const [next] = await catalogue.openSlots(record.groupId, [slot()])
        expect([...first, more, next].map((one) => [one?.slot, one?.round])).toEqual([
          [0, 0],
          [1, 0],
          [2, 0],
          [3, 1],
        ])
        const reader = await made.reader()
        const rounds = await reader.rounds(record.groupId)
        expect(rounds).toMatchObject([
          { ...roundOf(record), slots: [...first, more], settled: settledOf(record) },
          { ...roundOf(record, 1), slots: [next], settled: null },
        ])
        expect(rounds[1]?.ageMs).toBeGreaterThanOrEqual(0)
        await reader.close()
        expect(await kinds(record.runId)).toEqual(['group_opened', 'group_settled', 'group_opened'])
      })

      it('have one slot for one key and for one job', async () => {
        const record = await rollout()
        await catalogue.openRound(roundOf(record))
        const asked = slot('mine')
        const [first] = await catalogue.openSlots(record.groupId, [asked])
        expect(await catalogue.openSlots(record.groupId, [slot('mine')])).toEqual([first])
        expect(await catalogue.openSlots(record.groupId, [asked])).toEqual([first])
        expect((await catalogue.rounds(record.groupId))[0]?.slots).toEqual([first])
      })

      it('settle once: what stood first stands', async () => {
        const record = await rollout()
        await catalogue.openRound(roundOf(record))
        const first = await catalogue.settleRound(settledOf(record))
        expect(await catalogue.settleRound(settledOf(record, { state: 'failed', members: [] }))).toEqual(first)
        expect((await catalogue.rounds(record.groupId))[0]?.settled).toEqual(first)
        expect(await kinds(record.runId)).toEqual(['group_opened', 'group_settled'])
      })

      it('refuse slots once they have settled, and a second round before', async () => {
        const record = await rollout()
        await expect(catalogue.openSlots(record.groupId, [slot()])).rejects.toMatchObject({ code: 'ROUND_SETTLED' })
        await expect(catalogue.openRound(roundOf(record, 1))).rejects.toMatchObject({ code: 'ROUND_OPEN' })
        await catalogue.openRound(roundOf(record))
        const [known] = await catalogue.openSlots(record.groupId, [slot('a')])
        await expect(catalogue.openRound(roundOf(record, 1))).rejects.toMatchObject({ code: 'ROUND_OPEN' })
        await expect(catalogue.settleRound(settledOf(record, { round: 4 }))).rejects.toMatchObject({
          code: 'NOT_FOUND',
        })
        await catalogue.settleRound(settledOf(record))
        await expect(catalogue.openSlots(record.groupId, [slot()])).rejects.toMatchObject({ code: 'ROUND_SETTLED' })
        expect(await catalogue.openSlots(record.groupId, [slot('a')])).toEqual([known])
      })

      it('tell a verdict that comes too late, and stay as they were', async () => {
        const record = await rollout()
        await catalogue.openRound(roundOf(record))
        const before = verdict(record.id, 0.5, null)
        await catalogue.appendVerdict(before)
        const settled = await catalogue.settleRound(settledOf(record))
        const late = verdict(record.id, 1, before.id)
        await catalogue.appendVerdict(late)
        await catalogue.appendVerdict(late)
        expect((await catalogue.rounds(record.groupId))[0]?.settled).toEqual(settled)
        const events = await catalogue.runEvents(record.runId, { after: 0, limit: 99 })
        expect(events.map(({ kind }) => kind)).toEqual(['group_opened', 'group_settled', 'verdict_late'])
        expect(events[2]?.data).toEqual({
          groupId: record.groupId,
          round: 0,
          rolloutId: record.id,
          verdictId: late.id,
          status: 'scored',
          reward: 1,
        })
        const cursor = events[1]?.seq ?? 0
        expect(await catalogue.runEvents(record.runId, { after: cursor, limit: 1 })).toEqual([events[2]])
        expect(await catalogue.runEvents(newId(), { after: 0, limit: 9 })).toEqual([])
      })
    })

    it('names a fingerprint by its content', async () => {
      const fingerprint = {
        engine: 'vllm',
        version: '0.26.0',
        model: 'm',
        tokenizer: sha256('t'),
        chatTemplate: null,
        parsers: null,
        logprobKind: 'raw',
        speculative: null,
        quantisation: null,
      } as const
      const digest = await catalogue.putFingerprint(fingerprint)
      const reversed = Object.fromEntries(Object.entries(fingerprint).toReversed()) as unknown as typeof fingerprint
      expect(await catalogue.putFingerprint(reversed)).toBe(digest)
      expect(await catalogue.putFingerprint({ ...fingerprint, model: 'n' })).not.toBe(digest)
      expect(await catalogue.fingerprint(digest)).toEqual(fingerprint)
    })

    it('keeps the first verification of a key', async () => {
      const { id: _id, rolloutId: _of, at: _at, by: _by, supersedes: _before, ...found } = verdict(newId(), 1, null)
      const first = {
        id: 'rollout 7 of node b',
        asked: sha256('asked'),
        taskDigest: sha256('task'),
        at: 7,
        token: 'ann',
        verdict: found,
      }
      expect(await catalogue.verification(first.id)).toBeNull()
      expect(await catalogue.putVerification(first)).toEqual(first)
      expect(await catalogue.putVerification({ ...first, asked: sha256('other'), at: 8 })).toEqual(first)
      expect(await catalogue.verification(first.id)).toEqual(first)
      expect(await catalogue.verification(`${first.id} `)).toBeNull()
    })

    it('knows where the records of finished sessions are: the last told counts', async () => {
      const [rolloutId, home, one, two] = [newId(), newId(), newId(), newId()]
      const record = { rolloutId, home, folder: 'f', ofRollout: 2, count: 3, head: -5 }
      const first = { ...record, sessionId: one, object: sha256('first') }
      const other = { ...record, sessionId: two, object: sha256('other') }
      const loose = { ...record, sessionId: newId(), rolloutId: null, object: sha256('loose'), ofRollout: 1 }
      await catalogue.putArchived([first, other, loose])
      await catalogue.putArchived([first])
      expect(await catalogue.archived({ rolloutId })).toEqual(one < two ? [first, other] : [other, first])
      expect(await catalogue.archived({ sessionId: loose.sessionId })).toEqual([loose])
      expect(await catalogue.archived({ sessionId: newId() })).toEqual([])
      const later = { ...first, folder: 'g', object: sha256('later') }
      await catalogue.putArchived([later])
      const reader = await made.reader()
      expect(await reader.archived({ sessionId: one })).toEqual([later])
      const asked = ['first', 'later', 'loose', 'nobody'].map((name) => sha256(name))
      expect((await reader.namedObjects('f', asked)).toSorted()).toEqual([first.object, loose.object].toSorted())
      await reader.close()
    })

    it('keeps token texts per tokenizer, parts of characters too', async () => {
      await catalogue.putTokenTexts('a', new Map([[7, Uint8Array.from([0xe2, 0x82])]]))
      await catalogue.putTokenTexts('b', new Map([[7, Buffer.from('seven')]]))
      const texts = await catalogue.tokenTexts('a', [7, 7, 8])
      expect([...texts].map(([id, bytes]) => [id, [...bytes]])).toEqual([[7, [0xe2, 0x82]]])
    })

    it('finds runs, groups and rollouts by the start of their id', async () => {
      const record = await rollout()
      const found = await catalogue.resolve(record.id.slice(0, 6))
      expect(found).toContainEqual({ kind: 'rollout', id: record.id })
      expect(found).toContainEqual({ kind: 'run', id: record.runId })
      expect(found).toContainEqual({ kind: 'group', id: record.groupId })
      expect(await catalogue.resolve(record.id)).toEqual([{ kind: 'rollout', id: record.id }])
      expect(await catalogue.resolve('zzz')).toEqual([])
    })
  })
}
