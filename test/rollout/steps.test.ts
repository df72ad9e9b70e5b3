import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { attempt, terminal } from '../../src/envs/index.ts'
import { hacked, scored, unscored } from '../../src/reward/index.ts'
import { referenceAgent, type Rescored, rescoreRollouts, type RunSummary } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, type World } from './world.ts'

/**
 * A task of three steps in the folder layout of the format (harborframework.com/docs/tasks/multi-step, schema 1.4): tests
 * and scripts per step, a shared helper, a step that is set up, one that is a gate, and an artifact of one step alone.
 */
const files = {
  'task.toml': `schema_version = "1.4"
artifacts = ["/workspace"]
multi_step_reward_strategy = "mean"
[agent]
user = "agent"
[verifier]
environment_mode = "separate"
timeout_sec = 20
[environment]
network_mode = "no-network"
memory_mb = 512
[[steps]]
name = "scaffold"
min_reward = 1.0
[[steps]]
name = "fill"
min_reward = { lines = 2 }
[[steps]]
name = "finish"
artifacts = ["/tmp/extra"]
[steps.verifier]
env = { WANTED = "extra" }
`,
  'environment/Dockerfile': 'FROM paddock-base\n',
  'tests/reward.sh': 'say() { echo "$1" > /logs/verifier/reward.json; }\n',
  'cheats/plant.sh': 'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt\n',
  'steps/scaffold/instruction.md': 'Make the file list.\n',
  'steps/scaffold/tests/test.sh': `. /tests/reward.sh; test -f list && say '{"reward": 1}' || say '{"reward": 0}'\n`,
  'steps/scaffold/solution/solve.sh': 'touch /workspace/list\n',
  'steps/fill/instruction.md': 'Put two lines into list, as told in notes.\n',
  'steps/fill/workdir/setup.sh': 'echo "a b" > notes\n',
  'steps/fill/tests/test.sh': `. /tests/reward.sh; n=$(wc -l < list); say "{\\"reward\\": $([ "$n" = 2 ] && echo 1 || echo 0), \\"lines\\": $n}"; ls -A\n`,
  'steps/fill/solution/solve.sh': 'tr " " "\\n" < /workspace/notes > /workspace/list\n',
  'steps/finish/instruction.md': 'Write the word extra to /tmp/extra.\n',
  'steps/finish/tests/test.sh': `. /tests/reward.sh; grep -q "$WANTED" /tmp/extra && say '{"reward": 1}' || say '{"reward": 0}'\n`,
  'steps/finish/solution/solve.sh': 'echo extra > /tmp/extra\n',
}

describe('a task of several steps', () => {
  let world: World
  let root: string

  beforeAll(async () => {
    world = await openWorld()
    root = tempDir()
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  async function load(name: string, change: (toml: string) => string = (toml) => toml): Promise<Task> {
    for (const [path, text] of Object.entries({ ...files, 'task.toml': change(files['task.toml']) })) {
      await mkdir(dirname(join(root, name, path)), { recursive: true })
      await writeFile(join(root, name, path), text)
    }
    const [task] = await terminal.load(join(root, name))
    if (task === undefined) throw new Error('no task')
    return task
  }

  /** Runs these commands at the steps, one each. */
  async function running(task: Task, commands: readonly string[]): Promise<RunSummary> {
    for (const [i, step] of (terminal.steps(task)?.tasks ?? []).entries()) {
      await world.script(step, [{ shell: commands[i] ?? 'true' }, { say: `step ${i} done` }])
    }
    return world.run({ tasks: [task], harness: referenceAgent() })
  }

  /** What today's verifiers make of a rollout; `change` is made to a copy of the task's files. */
  async function rescored(task: Task, summary: RunSummary, change: (source: string) => Promise<void>) {
    const source = `${task.source}-changed`
    await cp(task.source, source, { recursive: true })
    await change(source)
    const { catalogue, blobs, recorder } = world.store
    const [result] = await rescoreRollouts({
      store: { catalogue, blobs, recorder },
      environment: () => terminal,
      sandbox: world.sandbox,
      rollouts: [await catalogue.rollout(summary.rollouts[0]?.rolloutId ?? '')],
      tasks: [{ ...task, source }],
      signal: new AbortController().signal,
    })
    return result satisfies Rescored | undefined
  }
  const unchanged = async (): Promise<void> => undefined

  test('is asked step by step in one box, each verified before the next, and scored by the mean', async () => {
    const task = await load('whole')
    const summary = await running(task, ['touch list', 'tr " " "\\n" < notes > list', 'echo nothing > /tmp/extra'])
    const [rollout] = summary.rollouts
    expect(rollout).toMatchObject({ end: 'completed', calls: 6, taints: [], verdict: { status: 'scored' } })
    expect(rollout?.verdict?.reward).toBeCloseTo(2 / 3)
    expect(rollout?.verdict?.components).toMatchObject({
      'step/scaffold': 1,
      'step/fill': 1,
      'step/finish': 0,
      lines: 2 / 3,
    })
    // What set the step up is not part of what the agent sees or leaves.
    expect(rollout?.verdict?.evidence).toMatch(/== fill\n.*list\nnotes\n/)
    const events = await world.store.recorder.events({ rolloutId: rollout?.rolloutId ?? '' })
    const stages = events.flatMap((event) => (event.kind === 'stage' && event.phase === 'start' ? [event.stage] : []))
    const round = ['setup', 'agent', 'collect']
    expect(stages.filter((name) => name !== 'verify')).toEqual(['queue', 'boot', 'setup', ...round, ...round, ...round])
    expect(stages.filter((name) => name === 'verify')).toHaveLength(3)
    const created = events.filter((event) => event.kind === 'box' && event.phase === 'created')
    expect(created).toHaveLength(1 + 3)

    // Each step is verified again on what was taken after it.
    expect(await rescored(task, summary, unchanged)).toMatchObject({ outcome: 'same' })
    const kinder = `. /tests/reward.sh; grep -q nothing /tmp/extra && say '{"reward": 0.5}'\n`
    const again = await rescored(task, summary, (source) =>
      writeFile(join(source, 'steps/finish/tests/test.sh'), kinder),
    )
    expect(again).toMatchObject({
      outcome: 'changed',
      after: { status: 'scored', components: { 'step/scaffold': 1, 'step/fill': 1, 'step/finish': 0.5 } },
    })
    expect(new Set(again?.after?.artifacts.map(({ step }) => step))).toEqual(
      new Set(['whole/scaffold', 'whole/fill', 'whole/finish']),
    )
  })

  test('ends at a step that is below its minimum', async () => {
    const task = await load('gate')
    const summary = await running(task, ['touch list', 'echo one > list', 'echo extra > /tmp/extra'])
    const [rollout] = summary.rollouts
    expect(rollout).toMatchObject({ end: 'completed', calls: 4, verdict: { status: 'scored', reward: 0.5 } })
    expect(rollout?.verdict?.components).toEqual({ 'step/scaffold': 1, 'step/fill': 0, lines: 0.5 })
    // A verifier that would have let it go on cannot say what the agent would have done then.
    const lenient = `. /tests/reward.sh; say '{"reward": 1, "lines": 2}'\n`
    const again = await rescored(task, summary, (source) =>
      writeFile(join(source, 'steps/fill/tests/test.sh'), lenient),
    )
    expect(again).toMatchObject({ outcome: 'not_stored', detail: expect.stringContaining('gate/finish') })
  })

  test('counts a step as failed that the agent made impossible to set up', async () => {
    const task = await load('blocked')
    const summary = await running(task, ['touch list; mkdir notes'])
    const [rollout] = summary.rollouts
    expect(rollout).toMatchObject({ end: 'completed', verdict: { status: 'scored', reward: 0.5 } })
    expect(rollout?.verdict?.components).toMatchObject({ 'step/scaffold': 1, 'step/fill': 0 })
  })

  test('is worth its last step where it says so, and nothing where a step has no number or was cheated', async () => {
    const steps = terminal.steps(await load('final', (toml) => toml.replace('"mean"', '"final"')))
    const facts = { verifier: { id: 'x', version: '1', sha256: '0'.repeat(64) }, trust: 'separate' as const }
    const [one, none] = [scored(1, facts), scored(0, facts)]
    expect(steps?.rollUp([none, one])).toMatchObject({ status: 'scored', reward: 1 })
    expect(steps?.rollUp([one, none])).toMatchObject({ status: 'scored', reward: 0 })
    expect(steps?.rollUp([one, hacked(0, facts), one])).toMatchObject({ status: 'hacked', reward: 0 })
    expect(steps?.rollUp([one, unscored('infra_error', 'no box', facts)])).toMatchObject({
      status: 'infra_error',
      reward: null,
      reason: 'step fill: no box',
    })
    expect(steps?.goesOn(0, none)).toBe(false)
    expect(steps?.goesOn(1, scored(1, { ...facts, components: { lines: 2 } }))).toBe(true)
    expect(steps?.goesOn(1, one)).toBe(false)
  })

  test('has an oracle of all its steps, and is verified on the files of the agent itself where it says so', async () => {
    const task = await load('shared', (toml) => toml.replace('"separate"', '"shared"'))
    const common = { environment: terminal, task, sandbox: world.sandbox, signal: new AbortController().signal }
    const [oracle, cheat] = await Promise.all([
      attempt({ ...common, script: await terminal.scripts.oracle(task) }),
      attempt({ ...common, script: (await terminal.scripts.cheats(task))[0] ?? terminal.scripts.nullAgent }),
    ])
    expect(oracle).toMatchObject({ status: 'scored', reward: 1, trust: 'unvalidated' })
    expect(cheat).toMatchObject({ status: 'hacked', reward: 0, trust: 'unvalidated' })
  })
})
