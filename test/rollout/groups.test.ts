import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GroupContext, terminal } from '../../src/envs/index.ts'
import { scored } from '../../src/reward/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { openWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

describe.runIf(await requireDocker())('groups on the scripted engine', () => {
  let world: World

  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test('n rollouts per task, no more at once than allowed, running the scripts of the environment', async () => {
    const tasks = [await terminalTask('log-forensics'), await terminalTask('git-archaeology')]
    const running = new Set<string>()
    let most = 0
    const summary = await world.run({
      tasks,
      harness: referenceAgent(),
      n: 3,
      limits: { agent: 2 },
      scriptedEngine: { control: `${world.engine.url}/control` },
      onProgress: (progress) => {
        if (progress.type !== 'stage' || progress.stage !== 'agent') return
        if (progress.phase === 'start') running.add(progress.rolloutId)
        else running.delete(progress.rolloutId)
        most = Math.max(most, running.size)
      },
    })
    expect(most).toBe(2)
    expect(summary.groups.map(({ size, task }) => [task.name, size])).toEqual([
      ['log-forensics', 3],
      ['git-archaeology', 3],
    ])
    // Which script a rollout acts is drawn; every one of them has a verdict all the same.
    for (const { rewards, mean } of summary.groups) {
      expect(rewards).toHaveLength(3)
      expect(rewards.every((reward) => reward === 0 || reward === 1)).toBe(true)
      expect(mean).toBeCloseTo(rewards.reduce((sum, reward) => sum + reward, 0) / 3)
    }
    const posted = await (await fetch(`${world.engine.url}/control/scripts`)).json()
    expect(posted).toMatchObject({
      scripts: [
        {
          candidates: [
            { name: 'oracle', weight: Math.log(3) },
            { name: 'forgets-the-rotated-logs', weight: 0 },
          ],
        },
        {
          candidates: [
            { name: 'oracle', weight: Math.log(3) },
            { name: 'blames-the-newest-change', weight: 0 },
          ],
        },
      ],
    })
    for (const { groupId, task } of summary.groups) {
      const stored = await world.store.catalogue.rollouts({ groupId })
      expect(new Set(stored.map(({ slot }) => slot))).toEqual(new Set([0, 1, 2]))
      expect(await world.store.catalogue.group(groupId)).toMatchObject({
        taskDigest: task.digest,
        promptVariant: 'default',
      })
    }
  })

  test('a group is scored by comparison; one that cannot be compared has no rewards', async () => {
    const tasks = [await terminalTask('log-forensics'), await terminalTask('git-archaeology')]
    for (const task of tasks) await world.script(task, [{ say: 'nothing' }])
    const facts = { verifier: { id: 'ranks', version: '1', sha256: '0'.repeat(64) }, trust: 'host' as const }
    const environment = {
      ...terminal,
      scoreGroup: async ({ task, members }: GroupContext) => {
        if (task.name !== 'log-forensics') throw new Error('no judge')
        return members.map((_, i) => scored(1 / (1 + i), { ...facts, components: { rank: i } }))
      },
    }
    const summary = await world.run({ tasks, harness: referenceAgent(), n: 2, environment })
    const [ranked, failed] = summary.groups
    expect(ranked?.rewards).toEqual([1, 0.5])
    expect(failed?.rewards).toEqual([])
    for (const { rolloutId, groupId } of summary.rollouts) {
      const { verdicts } = await world.store.catalogue.rollout(rolloutId)
      expect(verdicts).toHaveLength(2)
      expect(verdicts[0]).toMatchObject({ status: 'scored', reward: 0 })
      expect(verdicts[1]).toMatchObject(
        groupId === ranked?.groupId
          ? { status: 'scored', supersedes: verdicts[0]?.id, verifier: { id: 'ranks' } }
          : {
              status: 'unscorable',
              reward: null,
              supersedes: verdicts[0]?.id,
              reason: expect.stringContaining('no judge'),
            },
      )
    }
  })

  test('a session over its budget ends as budget, and what was done is verified', async () => {
    const task = await terminalTask('log-forensics')
    await world.script(task, [{ shell: 'true' }, { shell: 'true' }, { say: 'done' }])
    const budget = { maxCalls: 1, maxSampledTokens: null, maxWallMs: null }
    const summary = await world.run({ tasks: [task], harness: referenceAgent(), policy: { budget } })
    expect(summary.rollouts).toMatchObject([{ end: 'budget', calls: 1, taints: [], verdict: { reward: 0 } }])
  })

  test('a prompt that no longer fits ends as context overflow', async () => {
    await using small = await openWorld('--max-model-len', '800')
    const task = await terminalTask('log-forensics')
    await small.script(task, [{ shell: 'seq 2000' }, { say: 'never said' }])
    const summary = await small.run({ tasks: [task], harness: referenceAgent() })
    expect(summary.rollouts).toMatchObject([{ end: 'context_overflow', taints: [], verdict: { reward: 0 } }])
  })
})
