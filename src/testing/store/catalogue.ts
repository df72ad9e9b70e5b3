import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId, sha256, type Task, type Verdict } from '../../core/index.ts'
import type { Catalogue, CatalogueReader, RolloutRecord } from '../../trajectory/index.ts'

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
      costTokens: 0,
      supersedes,
    })

    it('gives a rollout back with all that was appended to it, to every reader', async () => {
      const record = await rollout()
      await catalogue.startRollout(record.id, 10)
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
    })

    it('lets only the first end count', async () => {
      const { id } = await rollout()
      await catalogue.endRollout(id, 20, 'completed', '')
      await catalogue.endRollout(id, 20, 'completed', '')
      await expect(catalogue.endRollout(id, 21, 'infra', '')).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      expect((await catalogue.rollout(id)).end).toBe('completed')
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
