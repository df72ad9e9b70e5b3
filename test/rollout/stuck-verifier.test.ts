/** A verifier that hangs, in a group with a deadline. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, terminal } from '../../src/envs/index.ts'
import { rescoreRollouts, type RunProgress, shellHarness } from '../../src/rollout/index.ts'
import { openWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

let world: World
let task: Task
beforeAll(async () => {
  world = await openWorld()
  task = await terminalTask('log-forensics')
  await world.engine.control('/scripts', {
    instruction: 'ask of the test',
    candidates: [{ name: 'only', weight: 0, steps: [{ say: 'nothing to do' }] }],
  })
})
afterAll(() => world[Symbol.asyncDispose]())

const asks = (instruction: string) => {
  const body = JSON.stringify({ messages: [{ role: 'user', content: instruction }] })
  const filled = body.replace('{', '{"model":"\'"$OPENAI_MODEL"\'",')
  return `curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '${filled}'`
}
const harness = () => shellHarness({ command: asks('ask of the test') })

test.runIf(await requireDocker())(
  'a verifier that hangs costs its own member alone, and the run ends at the deadline of its group',
  async () => {
    let count = 0
    const environment: Environment = {
      ...terminal,
      verify: (context) => ((count += 1) <= 2 ? untilAborted(context.signal) : terminal.verify(context)),
    }
    const notes: string[] = []
    const onProgress = (progress: RunProgress): void => void (progress.type === 'note' && notes.push(progress.line))
    const options = { tasks: [task], environment, harness: harness(), n: 6, limits: { verify: 2, agent: 6, boot: 6 } }
    const summary = await world.run({ ...options, group: { deadlineMs: 60_000, minUsable: 4 }, onProgress })
    expect(summary.groups[0]?.settled).toMatchObject({ state: 'settled', stoppedBy: 'deadline', usable: 4 })
    expect(summary.groups[0]?.settled?.members.filter(({ out }) => out === 'late')).toHaveLength(2)
    expect(summary.rollouts.filter(({ unverified }) => unverified)).toHaveLength(2)
    expect(notes).toContain('the group of log-forensics has settled (deadline): 2 of its rollouts are left unverified')
    const { store, sandbox } = world
    const recorded = await store.catalogue.rollouts({ runId: summary.runId })
    const { signal } = new AbortController()
    const rescored = await rescoreRollouts({ store, environment: () => terminal, sandbox, rollouts: recorded, signal })
    expect(rescored.map(({ outcome }) => outcome).toSorted()).toEqual([
      ...Array<string>(4).fill('same'),
      ...Array<string>(2).fill('verified'),
    ])
  },
  240_000,
)

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
}
