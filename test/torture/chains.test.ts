/** Chains of tasks in real boxes: a folder of files goes from the box of one to that of the next, and is credited where it is read. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId, type Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { referenceAgent, type RunOptions, type RunSummary } from '../../src/rollout/index.ts'
import { serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Trainer } from '../rl/trainer.ts'
import { openOwnWorld, type World } from '../rollout/world.ts'

const names = ['first-till', 'second-till', 'third-till']
let world: World
let tasks: readonly Task[]
beforeAll(async () => {
  world = await openOwnWorld()
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

test('the command of the guide, killed in its second link, is gone on with: links that had settled stay as they were', async () => {
  const root = join(import.meta.dirname, '../..')
  const guide = await readFile(join(root, 'docs/guides/chains.md'), 'utf8')
  const [program = '', ...args] = /^\.\/paddock run --chain .*$/m.exec(guide)?.[0].split(' ') ?? []
  const data = tempDir()
  const asked = (...more: readonly string[]): string =>
    execFileSync(join(root, program), [...more, '--data', data], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString()
  const child = spawn(join(root, program), [...args, '--data', data], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  try {
    await says(child, /first-till #1 .*\n(.*\n)*.*second-till/)
    child.kill('SIGKILL')
    await exited
    const rolloutsOf = () =>
      JSON.parse(asked('list', 'rollouts', '--json')) as {
        rollouts: readonly { id: string; runId: string; task: string }[]
      }
    const before = rolloutsOf().rollouts
    const runId = before[0]?.runId ?? ''
    const { summary } = JSON.parse(asked('run', '--resume', runId, '--json')) as { summary: RunSummary }
    const ended = summary.rollouts.filter(({ end }) => end === 'completed')
    expect(ended.map(({ task }) => task.name).toSorted()).toEqual(names.flatMap((name) => [name, name]).toSorted())
    for (const { rolloutId } of summary.rollouts.filter(({ task }) => task.name === 'first-till')) {
      expect(before.map(({ id }) => id)).toContain(rolloutId)
    }
    expect(ended[0]?.verdict?.components).toHaveProperty('chain_credit')
  } finally {
    child.kill('SIGKILL')
  }
})

test('a trainer begins a group with what a rollout of another one left', async () => {
  const data = tempDir()
  const serving = await serve(data)
  try {
    const trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
    const folder = join(import.meta.dirname, '../../examples/chains/tills/tasks')
    await trainer.ask('POST', '/runs', { run_id: 'chained', tasks: folder })
    await trainer.attach('chained')
    const link = async (group: string, task: string, library: unknown) => {
      const asked = { group_id: group, task, n: 1, library, labels: { chain: 'tills' } }
      await trainer.ask('POST', '/runs/chained/groups', { groups: [asked] })
      for (;;) {
        const [claim] = await trainer.claim('chained', { wait_s: 60 })
        if (claim !== undefined) return trainer.rows(group, claim.claim_id)
      }
    }
    const one = await link('one', 'first-till', 'empty')
    expect(one.members).toMatchObject([{ labels: { chain: 'tills', library: 'empty' } }])
    const rollout = one.members[0]?.rollout_id
    const two = await link('two', 'second-till', { rollout })
    expect(two.members).toMatchObject([{ labels: { library: expect.stringMatching(/^[0-9a-f]{64}$/) } }])
    const none = { groups: [{ group_id: 'three', task: 'third-till', n: 1, library: { rollout: 'nobody' } }] }
    expect(await trainer.refused('POST', '/runs/chained/groups', none)).toEqual([400, 'GROUP_INVALID'])
    await trainer.ask('POST', '/runs', { run_id: 'outside' })
    const outside = { groups: [{ group_id: 'x', task: { name: 'x', instruction: 'x' }, n: 1, library: 'empty' }] }
    expect(await trainer.refused('POST', '/runs/outside/groups', outside)).toEqual([400, 'GROUP_INVALID'])
  } finally {
    await serving.stop()
  }
})

/** Resolves when a program has said something. */
async function says(child: ChildProcess, what: RegExp): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        said += chunk.toString()
        if (what.test(said)) resolve()
      })
    }
    child.once('exit', () => reject(new Error(`it ended: ${said}`)))
  })
}
