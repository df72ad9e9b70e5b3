import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EngineFingerprint, newId, sha256, type Task, type Verdict } from '../../core/index.ts'
import type { Catalogue, GroupRecord, RolloutRecord } from '../../trajectory/index.ts'

/** A fresh, empty catalogue. */
export interface CatalogueUnderTest {
  readonly catalogue: Catalogue
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

    const seed = async (): Promise<{ task: Task; group: GroupRecord; rollout: RolloutRecord }> => {
      const task = taskOf('a')
      const run = { id: newId(), name: 'first', createdAt: 5, config: { n: 2, nested: { list: [1, null] } } }
      const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: 'default', createdAt: 6 }
      const rollout = {
        id: newId(),
        runId: run.id,
        groupId: group.id,
        slot: 0,
        attempt: 0,
        harness: 'reference',
        createdAt: 7,
      }
      await catalogue.putTask(task)
      await catalogue.putRun(run)
      await catalogue.putGroup(group)
      await catalogue.putRollout(rollout)
      expect(await catalogue.run(run.id)).toEqual(run)
      return { task, group, rollout }
    }

    it('gives tasks, groups and rollouts back as they were put', async () => {
      const { task, group, rollout } = await seed()
      expect(await catalogue.task(task.digest)).toEqual(task)
      expect(await catalogue.tasks()).toEqual([task])
      expect(await catalogue.group(group.id)).toEqual(group)
      expect(await catalogue.groups(group.runId)).toEqual([group])
      expect(await catalogue.rollout(rollout.id)).toEqual({
        ...rollout,
        taskDigest: task.digest,
        startedAt: null,
        endedAt: null,
        end: null,
        endDetail: '',
        taints: [],
        verdicts: [],
        labels: {},
      })
    })

    it('takes the same task twice', async () => {
      await catalogue.putTask(taskOf('a'))
      await catalogue.putTask(taskOf('a'))
      expect(await catalogue.tasks()).toHaveLength(1)
    })

    it('counts the first end, ignores its repetition and refuses another', async () => {
      const { rollout } = await seed()
      await catalogue.startRollout(rollout.id, 10)
      await catalogue.endRollout(rollout.id, 20, 'agent_timeout', 'after 5 min')
      await catalogue.endRollout(rollout.id, 20, 'agent_timeout', 'after 5 min')
      await expect(catalogue.endRollout(rollout.id, 30, 'completed', '')).rejects.toThrow()
      expect(await catalogue.rollout(rollout.id)).toMatchObject({
        startedAt: 10,
        endedAt: 20,
        end: 'agent_timeout',
        endDetail: 'after 5 min',
      })
    })

    it('appends verdicts in order and keeps the superseded ones', async () => {
      const { rollout } = await seed()
      const first = verdictOf(rollout.id, { status: 'infra_error', reward: null, reason: 'box died' })
      const second = verdictOf(rollout.id, { status: 'scored', reward: 0.25 }, first.id)
      await catalogue.appendVerdict(first)
      await catalogue.appendVerdict(second)
      expect((await catalogue.rollout(rollout.id)).verdicts).toEqual([first, second])
    })

    it('keeps each cause of taint once and the last value of a label', async () => {
      const { rollout } = await seed()
      for (const cause of ['stall', 'engine_error', 'stall']) await catalogue.taint(rollout.id, cause)
      await catalogue.label(rollout.id, 'review', 'open')
      await catalogue.label(rollout.id, 'review', 'done')
      const view = await catalogue.rollout(rollout.id)
      expect(view.taints).toEqual(['stall', 'engine_error'])
      expect(view.labels).toEqual({ review: 'done' })
    })

    it('filters rollouts', async () => {
      const { group, rollout, task } = await seed()
      const other = { ...rollout, id: newId(), slot: 1 }
      await catalogue.putRollout(other)
      const ids = async (filter: Parameters<Catalogue['rollouts']>[0]): Promise<string[]> =>
        (await catalogue.rollouts(filter)).map((found) => found.id)
      expect(new Set(await ids({ groupId: group.id }))).toEqual(new Set([rollout.id, other.id]))
      expect(await ids({ taskDigest: task.digest, limit: 1 })).toHaveLength(1)
      expect(await ids({ runId: newId() })).toEqual([])
    })

    it('refuses a rollout whose place is taken, and what belongs to nothing', async () => {
      const { rollout } = await seed()
      await expect(catalogue.putRollout({ ...rollout, id: newId() })).rejects.toThrow()
      await expect(
        catalogue.putGroup({ ...(await catalogue.group(rollout.groupId)), id: newId(), runId: newId() }),
      ).rejects.toThrow()
      await expect(catalogue.appendVerdict(verdictOf(newId(), { status: 'scored', reward: 1 }))).rejects.toThrow()
    })

    it('says NOT_FOUND for what is not there', async () => {
      for (const asked of [
        catalogue.run(newId()),
        catalogue.task(sha256('nothing')),
        catalogue.group(newId()),
        catalogue.rollout(newId()),
        catalogue.fingerprint(sha256('nothing')),
      ]) {
        await expect(asked).rejects.toMatchObject({ code: 'NOT_FOUND' })
      }
    })

    it('names a fingerprint by its content', async () => {
      const digest = await catalogue.putFingerprint(fingerprint)
      expect(await catalogue.putFingerprint({ ...fingerprint })).toBe(digest)
      expect(await catalogue.putFingerprint({ ...fingerprint, version: '0.33' })).not.toBe(digest)
      expect(await catalogue.fingerprint(digest)).toEqual(fingerprint)
    })

    it('keeps token texts per tokenizer, parts of characters included', async () => {
      const half = Buffer.from('ä').subarray(0, 1)
      await catalogue.putTokenTexts('one', new Map([[5, half]]))
      await catalogue.putTokenTexts('two', new Map([[5, Buffer.from('x')]]))
      const texts = await catalogue.tokenTexts('one', [5, 6])
      expect([...texts].map(([id, bytes]) => [id, Buffer.from(bytes)])).toEqual([[5, half]])
    })

    it('resolves the start of an id', async () => {
      const { rollout } = await seed()
      expect(await catalogue.resolve(rollout.id)).toEqual([{ kind: 'rollout', id: rollout.id }])
      expect((await catalogue.resolve(rollout.id.slice(0, 8))).map(({ kind }) => kind).toSorted()).toEqual([
        'group',
        'rollout',
        'run',
      ])
      expect(await catalogue.resolve('zz')).toEqual([])
    })
  })
}

const fingerprint: EngineFingerprint = {
  engine: 'vllm',
  version: '0.32',
  model: 'm',
  tokenizer: sha256('tokenizer'),
  chatTemplate: null,
  parsers: 'hermes',
  logprobKind: 'raw',
  speculative: null,
  quantisation: null,
}

function taskOf(name: string): Task {
  return {
    digest: sha256(name),
    name,
    environment: 'terminal',
    instruction: 'Do "this".\nThen that.',
    split: 'train',
    data: { deep: [{ x: 1 }] },
    source: 'here',
  }
}

function verdictOf(
  rolloutId: string,
  outcome: { status: 'scored'; reward: number } | { status: 'infra_error'; reward: null; reason: string },
  supersedes: string | null = null,
): Verdict {
  return {
    id: newId(),
    rolloutId,
    at: 3,
    components: { tests: 0.25 },
    steps: [],
    evidence: 'one of four',
    artifacts: [{ path: 'out.txt', sha256: sha256('out'), sizeBytes: 3 }],
    verifier: { id: 'terminal', version: '1', sha256: sha256('v') },
    trust: 'separate',
    costTokens: 0,
    supersedes,
    ...outcome,
  }
}
