/** Parents whose box died in the middle of a call: what is grafted stands at that call, with nothing of what came of it. */
import Docker from 'dockerode'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId, type Task } from '../../src/core/index.ts'
import { differenceOf, withoutVolatile } from '../../src/proxy/past/difference.ts'
import { claudeCode, codex, type Harness, opencode, piHarness, type RunSummary } from '../../src/rollout/index.ts'
import { dockerInspector } from '../../src/sandbox/index.ts'
import type { CallRecord } from '../../src/trajectory/index.ts'
import { forkOf, logsOf, mainOf, promptOf, sampledIn, trainedIn, turn } from '../rollout/fork-support.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'
import { sized } from './size.ts'

let world: World
let task: Task
beforeAll(async () => {
  world = await openOwnWorld()
  task = await terminalTask('log-forensics')
})
afterAll(() => world[Symbol.asyncDispose]())

/** `Z`: before any byte of the answer. `M`: in the middle of it. `X`: while its tool runs. */
const cuts = ['Z', 'M', 'X'] as const
type Cut = (typeof cuts)[number]

/** Words that are in no prompt of a program. */
const words = ['aleph', 'beth', 'gimel', 'daleth']
const begun = { directory: '/tmp', name: 'tool-begun' }
/** `stuck`: the turn whose tool never ends. */
const script = (stuck = -1) =>
  world.script(task, [
    ...words.flatMap((word, at) => [
      { say: `Now comes ${word}, and I say so in as many words as it takes.` },
      at === stuck ? { shell: `touch ${begun.directory}/${begun.name}; sleep 600` } : turn(word),
    ]),
    { say: 'done' },
  ])

/** A rollout whose box is killed at a call of its conversation. */
async function cutAt(harness: Harness, at: number, cut: Cut): Promise<RunSummary> {
  const runId = newId()
  await script(cut === 'X' ? at : -1)
  const place = cut === 'Z' ? 'before_first_byte' : 'mid_stream'
  // Only prompts from this call on say it.
  const match = { instruction: `mkdir -p ${words[at - 1] ?? ''}` }
  if (cut !== 'X') await world.engine.fault({ kind: 'stall', at: place, seconds: 600, token: 9, match })
  const running = world.run({ runId, tasks: [task], harness, snapshotEvery: 1, infraRetries: 0 })
  const killed = (async () => {
    if (cut !== 'X') await world.engine.struck(cut === 'Z' ? 0 : 8)
    await new Docker().getContainer(await boxOf(runId, cut)).kill()
  })()
  const over = running.then(({ rollouts: [only] }) => {
    throw new Error(`it ended before it was killed: ${only?.end}, ${only?.detail}`)
  })
  await Promise.race([killed, over])
  over.catch(() => undefined)
  return await running
}

/** The agent's box; of one whose tool is to be at work, once that is. */
async function boxOf(runId: string, cut: Cut): Promise<string> {
  const inspector = dockerInspector()
  for (;;) {
    const box = (await inspector.list()).find(({ run, role }) => run === runId && role === 'agent')
    if (box === undefined) continue
    if (cut !== 'X') return box.id
    const { found } = await inspector.getFiles(box, `${begun.directory}/${begun.name}`).catch(() => ({ found: false }))
    if (found) return box.id
  }
}

const bodyOf = (call: CallRecord | undefined): unknown =>
  withoutVolatile(JSON.parse(Buffer.from(call?.intent.body ?? []).toString()))

/** What a program adds to its conversation with each request: chat, messages and responses name it so. */
function itemsOf(call: CallRecord | undefined): readonly unknown[] {
  const { messages, input } = bodyOf(call) as { readonly messages?: unknown[]; readonly input?: unknown[] }
  return messages ?? input ?? []
}

const short = [
  { harness: piHarness(), places: [2] },
  { harness: codex(), places: [2] },
]
const long = [piHarness(), codex(), opencode(), claudeCode()].map((harness) => ({ harness, places: [1, 2, 3] }))
const cases = sized(long, short).flatMap(({ harness, places }) =>
  places.flatMap((at) => cuts.map((cut) => ({ harness, at, cut }))),
)

test.each(cases)(
  '$harness.name grafted at its call $at, where its parent was cut at $cut',
  async ({ harness, at, cut }) => {
    const parent = await cutAt(harness, at, cut)
    expect(parent.rollouts).toMatchObject([{ end: 'infra', verdict: null }])
    const [then] = await logsOf(world, parent)
    const asked = then === undefined ? undefined : mainOf(then)[at]
    expect(then === undefined ? 0 : mainOf(then).length).toBe(at + 1)
    expect((asked?.commit?.outcome.kind ?? 'none') === 'complete').toBe(cut === 'X')

    await script()
    const child = await world.run({
      tasks: [task],
      harness,
      snapshotEvery: 1,
      infraRetries: 0,
      ...forkOf(parent, then, at, 'graft'),
    })
    const [ended] = child.rollouts
    expect(ended, ended?.detail).toMatchObject({ end: 'completed', taints: [], verdict: { status: 'scored' } })
    const [now] = await logsOf(world, child)
    if (now === undefined) throw new Error('no log')
    const [first, second] = mainOf(now).slice(at)
    expect(differenceOf(bodyOf(asked), bodyOf(first))).toBe(null)
    const ids = await promptOf(world, first?.intent.id)
    expect(ids).toEqual(await promptOf(world, asked?.intent.id))
    // Behind it stands its own turn alone: what its parent had begun to say or to do is nowhere.
    const before = itemsOf(first)
    expect(differenceOf(before, itemsOf(second).slice(0, before.length))).toBe(null)
    const { choices } = await world.engine.generation(first?.intent.id)
    const own = [...ids, ...(choices[0]?.tokenIds ?? [])]
    expect((await promptOf(world, second?.intent.id)).slice(0, own.length)).toEqual(own)
    expect(itemsOf(second).length).toBeGreaterThan(before.length)
    expect(trainedIn(now)).toBe(sampledIn(now))
  },
)
