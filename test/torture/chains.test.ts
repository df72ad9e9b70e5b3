/** Chains of tasks in real boxes: a folder of files goes from the box of one to that of the next, and is credited where it is read. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId, type Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { referenceAgent, type RunOptions, type RunSummary } from '../../src/rollout/index.ts'
import { openWorld, type World } from '../rollout/world.ts'

const names = ['first-till', 'second-till', 'third-till']
let world: World
let tasks: readonly Task[]
beforeAll(async () => {
  world = await openWorld()
  const all = await terminal.load(join(import.meta.dirname, '../../examples/chains/tills/tasks'))
  tasks = names.flatMap((name) => all.find((task) => task.name === name) ?? [])
})
afterAll(() => world[Symbol.asyncDispose]())

const tool = `cat > /library/total.py <<'PY'
import json, sys
code = json.load(open('/library/code.json'))
print(sum(int(''.join(code[c] for c in line.split()[1])) for line in open(sys.argv[1])))
PY
python3 -c "import json; print(json.dumps(dict(l.split() for l in open('/workspace/codebook.txt'))))" > /library/code.json`
const sum = 'python3 /library/total.py /workspace/till.txt > /workspace/total.txt'
const first = [{ shell: `${tool}\n${sum}` }, { say: 'done' }]
const later = [{ shell: sum }, { say: 'done' }]
const idle = [{ say: 'I leave it.' }]

async function scripts(...steps: readonly (readonly object[])[]): Promise<void> {
  for (const [at, task] of tasks.entries()) await world.script(task, steps[at] ?? idle)
}

function run(more: Partial<RunOptions> = {}): Promise<RunSummary> {
  const chain = { name: 'tills', libraries: 'shared' as const, credit: 0.5 }
  return world.run({ tasks, harness: referenceAgent(), n: 2, infraRetries: 0, chain, ...more })
}

async function libraryOf(rolloutId: string) {
  const events = await world.store.recorder.events({ rolloutId })
  const found = events.find((event) => event.kind === 'library')
  if (found === undefined) throw new Error('no library')
  return found
}

const rewards = ({ rollouts }: RunSummary) => rollouts.map(({ verdict }) => verdict?.reward ?? null)

test('a tool that the first link left solves the later ones, and is credited because they read it', async () => {
  await scripts(first, later, later)
  const runId = newId()
  const summary = await run({ runId })
  // The library of the first member goes on; what the other one left is nobody's, and is worth what it was.
  expect(rewards(summary)).toEqual([1.5, 1, 1, 1, 1, 1])
  const events = await Promise.all(summary.rollouts.map(({ rolloutId }) => libraryOf(rolloutId)))
  const [one, , two, , three] = events
  const from = summary.rollouts[0]?.rolloutId
  expect(one).toMatchObject({ given: null, from: null, used: [], wrote: ['code.json', 'total.py'], refused: [] })
  expect(two).toMatchObject({ given: one?.left, left: one?.left, from, used: ['code.json', 'total.py'], wrote: [] })
  expect(three).toMatchObject({ given: one?.left, from })
  // Whoever is compared began with the same.
  for (const { groupId, task } of summary.groups) {
    const rollouts = await world.store.catalogue.rollouts({ groupId })
    const labels = { chain: 'tills', link: String(names.indexOf(task.name) + 1) }
    for (const rollout of rollouts) expect(rollout.labels).toMatchObject(labels)
    expect(new Set(rollouts.map((rollout) => rollout.labels['library'])).size).toBe(1)
  }
  // Said again, nothing of it is done again: no rollout, no credit.
  const again = await run({ runId, resume: true })
  expect(again.rollouts.map(({ rolloutId }) => rolloutId)).toEqual(summary.rollouts.map(({ rolloutId }) => rolloutId))
  expect(rewards(again)).toEqual(rewards(summary))
})

test('without it they fail, and one that says that it used it and did not read it earns nothing', async () => {
  await scripts([{ shell: `${tool}\n${sum}; rm /library/total.py` }, { say: 'done' }], later, [
    { shell: 'echo I used /library/code.json; ls -l /library' },
    { say: 'I used /library/code.json' },
  ])
  const summary = await run({ n: 1 })
  expect(rewards(summary)).toEqual([1, 0, 0])
  const [, , last] = await Promise.all(summary.rollouts.map(({ rolloutId }) => libraryOf(rolloutId)))
  expect(last).toMatchObject({ used: [] })
})

test('members in parallel chains are a group only where their libraries are equal', async () => {
  await scripts([{ shell: `${tool}\n${sum}; date +%N > /library/note-$$` }, { say: 'done' }], later, later)
  const summary = await run({ chain: { name: 'tills', libraries: 'parallel', credit: 0.5 } })
  expect(summary.groups.map(({ size }) => size)).toEqual([2, 1, 1, 1, 1])
  expect(rewards(summary)).toEqual([1.5, 1.5, 1, 1, 1, 1])
})

test('a hostile library is kept without what is hostile, or not at all', async () => {
  const hostile = `${tool}\n${sum}
ln -s /logs/verifier /library/verifier; echo x > /library/x1; ln /library/x1 /library/x2; ln -s ../tests /library/tests; mkfifo /library/pipe`
  await scripts(
    [{ shell: hostile }, { say: 'done' }],
    [{ shell: `${sum}; head -c 9000000 /dev/zero > /library/bomb` }, { say: 'done' }],
    [{ shell: `${sum}; i=0; while [ $i -lt 700 ]; do : > /library/f$i; i=$((i+1)); done` }, { say: 'done' }],
  )
  const summary = await run({ n: 1 })
  expect(rewards(summary)).toEqual([1.5, 1, 1])
  const [one, two, three] = await Promise.all(summary.rollouts.map(({ rolloutId }) => libraryOf(rolloutId)))
  const refusedBy = (event: typeof one) =>
    Object.fromEntries((event?.refused ?? []).map(({ path, reason }) => [path, reason]))
  expect(refusedBy(one)).toMatchObject({ verifier: 'link_out', tests: 'link_out' })
  expect(Object.values(refusedBy(one))).toEqual(expect.arrayContaining(['hard_link', 'device']))
  expect(one?.wrote).toContain('total.py')
  expect(refusedBy(two)).toMatchObject({ bomb: 'too_large' })
  expect([two?.left, three?.left]).toEqual([one?.left, one?.left])
})

test('a link that machines failed takes nothing from those before it', async () => {
  await scripts(first, later, later)
  const flaky = {
    ...terminal,
    setup: async (context: Parameters<typeof terminal.setup>[0]) => {
      if (context.task.name === 'second-till') await context.box.destroy()
      return terminal.setup(context)
    },
  }
  const summary = await run({ n: 1, environment: flaky })
  expect(summary.rollouts.map(({ end }) => end)).toEqual(['completed', 'infra', 'completed'])
  expect(rewards(summary)).toEqual([1.5, null, 1])
})
