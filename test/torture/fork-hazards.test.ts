/**
 * What goes wrong with forks of command-line agents, unmodified: results that are large or come in another order, another day and
 * machine, files that were read before, and what is in no copy of a box.
 */
import { afterEach, expect, test } from 'vitest'
import type { Event, Task } from '../../src/core/index.ts'
import { untilWritten } from '../../src/rollout/transcript.ts'
import {
  type BoxHarness,
  claudeCode,
  type HarnessLaunch,
  opencode,
  piHarness,
  qwenCode,
  type RunSummary,
} from '../../src/rollout/index.ts'
import type { ForkFrom, SessionLog } from '../../src/trajectory/index.ts'
import {
  forkOf,
  logsOf,
  mainOf,
  promptOf,
  saidAfter,
  sampledIn,
  steps,
  trainedIn,
  treeAfter,
} from '../rollout/fork-support.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'

let world: World
let task: Task
afterEach(() => world[Symbol.asyncDispose]())

async function open(script: readonly object[], ...engineFlags: string[]): Promise<void> {
  world = await openOwnWorld(...engineFlags)
  task = await terminalTask('log-forensics')
  await world.script(task, script)
}

const run = (harness: BoxHarness, more: object = {}) =>
  world.run({ tasks: [task], harness, snapshotEvery: 1, infraRetries: 0, ...more })

interface Done {
  readonly summary: RunSummary
  readonly log: SessionLog
  readonly events: readonly Event[]
}

async function done(summary: RunSummary): Promise<Done> {
  const [log] = await logsOf(world, summary)
  if (log === undefined) throw new Error('no log')
  return {
    summary,
    log,
    events: await world.store.recorder.events({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' }),
  }
}

async function parentOf(harness: BoxHarness): Promise<Done> {
  const parent = await done(await run(harness))
  const [ended] = parent.summary.rollouts
  expect(ended, ended?.detail).toMatchObject({ end: 'completed', taints: [] })
  return parent
}

async function childOf(
  harness: BoxHarness,
  { summary, log }: Done,
  at: number,
  way: ForkFrom['way'],
  onDivergence: ForkFrom['onDivergence'] = 'refuse',
): Promise<Done> {
  const { fork } = forkOf(summary, log, at, way).group
  return done(await run(harness, { group: { fork: { ...fork, onDivergence } } }))
}

/** It stands where its parent stood, in tokens and in files, and what it does then comes to the same. */
async function expectSame(parent: Done, child: Done, at: number, until = Infinity): Promise<void> {
  const [ended] = child.summary.rollouts
  const told = replaysOf(child).map(({ phase, detail }) => (detail === '' ? phase : `${phase}: ${detail}`))
  const why = `${ended?.detail}; ${told.join('; ')}`
  expect(ended, why).toMatchObject({ end: 'completed', taints: [], verdict: { status: 'scored' } })
  const [then, now] = [mainOf(parent.log), mainOf(child.log)]
  expect(now).toHaveLength(then.length)
  for (const [index, call] of now.entries()) {
    if (index >= at && index <= until)
      expect(await promptOf(world, call.intent.id)).toEqual(await promptOf(world, then[index]?.intent.id))
  }
  const last = now.length - 2
  expect(await treeAfter(world, idOf(child), now[last]?.intent.id)).toBe(
    await treeAfter(world, idOf(parent), then[last]?.intent.id),
  )
  expect(trainedIn(child.log)).toBe(sampledIn(child.log))
}

const replaysOf = ({ log }: Done) => log.events.flatMap((event) => (event.kind === 'replay' ? [event] : []))
const idOf = ({ summary }: Done) => summary.rollouts[0]?.rolloutId ?? ''
const bodyOf = ({ log }: Done, at: number) => Buffer.from(mainOf(log)[at]?.intent.body ?? []).toString()

/** On a busy machine Qwen Code now and then loses what a command printed that ends at once. */
const slowFast = [{ shell: 'sleep 0.6; echo slow' }, { shell: 'echo fast; sleep 0.2' }]
const awkward = (read: object, edit: object) => [
  { shell: `printf 'alpha\\nbeta\\n' > notes` },
  read,
  { parallel: slowFast },
  { parallel: slowFast.toReversed() },
  { shell: `head -c 700000 /dev/zero | tr '\\0' x | fold -w 70` },
  edit,
  { shell: 'cat notes' },
  { say: 'done' },
]
const notes = '/workspace/notes'
const edited = { file_path: notes, old_string: 'beta', new_string: 'gamma' }

const paced = ['--tokens-per-second', '200'] as const

test('behind parallel tools, slow and fast, and a result of a megabyte a child of Claude Code edits a file that was read before', async () => {
  const script = awkward({ tool: 'Read', args: { file_path: notes } }, { tool: 'Edit', args: edited })
  await open(script, ...paced)
  const parent = await parentOf(claudeCode())
  const child = await childOf(claudeCode(), parent, 5, 'graft')
  await expectSame(parent, child, 5)
  expect(bodyOf(child, 7)).toContain('gamma')
})

test('Qwen Code edits a file that was read before, at once where its model was slow, and is refused behind a result that it names anew', async () => {
  const script = awkward({ tool: 'read_file', args: { file_path: notes } }, { tool: 'edit', args: edited })
  await open(script, ...paced)
  const parent = await parentOf(qwenCode())
  const child = await childOf(qwenCode(), parent, 4, 'replay')
  await expectSame(parent, child, 4, 4)
  expect(bodyOf(child, 7)).toContain('gamma')
  // So long a result goes to a file with a random name.
  const refused = await childOf(qwenCode(), parent, 5, 'replay')
  expect(refused.summary.rollouts).toMatchObject([{ end: 'infra', verdict: null, taints: ['REPLAY_DIVERGED'] }])
  expect(replaysOf(refused).at(-1)).toMatchObject({
    phase: 'diverged',
    detail: expect.stringMatching(/^messages\[13\]\.content.*run_shell_command_/) as string,
  })
})

const stamp = '.678901234'
test.each([
  { harness: claudeCode(), read: { tool: 'Read', args: { file_path: notes } }, edit: { tool: 'Edit', args: edited } },
  {
    harness: opencode(),
    read: { tool: 'read', args: { filePath: notes } },
    edit: { tool: 'edit', args: { filePath: notes, oldString: 'beta', newString: 'gamma' } },
  },
])(
  'in a copy the times of files are whole seconds, and $harness.name edits what was read before all the same',
  async ({ harness, read, edit }) => {
    const make = `printf 'alpha\\nbeta\\n' > notes; touch -d '2026-01-02 03:04:05${stamp}' notes; stat -c %.9Y notes`
    await open([{ shell: make }, read, { shell: 'echo two > two' }, edit, { shell: 'cat notes' }, { say: 'done' }])
    const parent = await parentOf(harness)
    expect(bodyOf(parent, 1)).toContain(stamp)
    const at = { rolloutId: idOf(parent), callId: mainOf(parent.log)[2]?.intent.id }
    expect(await saidAfter(world, at, 'stat -c %.9Y notes')).toMatch(/^\d+\.000000000\n$/)
    const child = await childOf(harness, parent, 3, 'graft')
    await expectSame(parent, child, 3)
    expect(bodyOf(child, 5)).toContain('gamma')
  },
)

test('a box is kept once its transcript holds the whole of each result', async () => {
  await open(steps)
  const image = await world.sandbox.ensureImage({ kind: 'paddock-base' })
  await using box = await world.sandbox.createBox({ image, profile: 'user', labels: { role: 'probe' } })
  const told = { directory: 'projects', holds: (id: string) => `"tool_use_id":"${id}"` }
  const body = Buffer.from(JSON.stringify([{ type: 'tool_result', tool_use_id: 'one' }]))
  const dir = '/tmp/paddock-home/projects/of a task'
  await box.exec({ command: `mkdir -p '${dir}'; printf '{"tool_use_id":"one","content":"half of' > '${dir}/it.jsonl'` })
  await expect(untilWritten(box, told, body)).rejects.toMatchObject({ code: 'HARNESS_FAILED' })
  await box.exec({ command: `echo ' it"}' >> '${dir}/it.jsonl'` })
  await untilWritten(box, told, body)
})

/** Tells a program of the next day, another host and another kernel. Of a program that is not static. */
const elsewhere = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#define DAY 86400
int clock_gettime(clockid_t which, struct timespec *at) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int said = real(which, at);
  if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) at->tv_sec += DAY;
  return said;
}
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000; return 0;
}
time_t time(time_t *at) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
int gethostname(char *name, size_t size) { strncpy(name, "elsewhere", size); return 0; }
int uname(struct utsname *of) {
  int (*real)(struct utsname *) = dlsym(RTLD_NEXT, "uname");
  int said = real(of);
  strcpy(of->nodename, "elsewhere"); strcpy(of->release, "9.9.9"); return said;
}
`

/** The same program on the next day on another machine, or in another directory. */
function moved(harness: BoxHarness, to: 'elsewhere' | 'directory'): BoxHarness {
  const line =
    to === 'elsewhere'
      ? 'gcc -shared -fPIC -o "$HOME/elsewhere.so" "$HOME/elsewhere.c" -ldl && exec env LD_PRELOAD="$HOME/elsewhere.so" "$@"'
      : 'mkdir -p /tmp/other && cd /tmp/other && exec "$@"'
  const wrap = (launch: HarnessLaunch): HarnessLaunch => ({
    ...launch,
    command: ['sh', '-c', line, 'sh', ...(typeof launch.command === 'string' ? [] : launch.command)],
    files: [...launch.files, { path: 'elsewhere.c', data: elsewhere }],
  })
  const { resumes } = harness
  return {
    ...harness,
    configure: (context) => wrap(harness.configure(context)),
    ...(resumes === undefined
      ? {}
      : { resumes: { ...resumes, configure: (context) => wrap(resumes.configure(context)) } }),
  }
}

test('on the next day and another machine pi asks the same, and Qwen Code is refused with the date', async () => {
  await open(steps)
  const parent = await parentOf(piHarness())
  await expectSame(parent, await childOf(moved(piHarness(), 'elsewhere'), parent, 2, 'replay'), 2)
  const qwen = await parentOf(qwenCode())
  const refused = await childOf(moved(qwenCode(), 'elsewhere'), qwen, 2, 'replay')
  expect(refused.summary.rollouts).toMatchObject([{ end: 'infra', verdict: null, taints: ['REPLAY_DIVERGED'] }])
  const day = new Date(Date.now() + 86_400_000).toLocaleDateString('en-US', { month: 'long', day: 'numeric' })
  expect(replaysOf(refused).at(-1)).toMatchObject({ phase: 'diverged', detail: expect.stringContaining(day) as string })
})

test('a graft on the next day and another machine asks with the day of the record', async () => {
  await open(steps)
  const parent = await parentOf(opencode())
  const child = await childOf(moved(opencode(), 'elsewhere'), parent, 2, 'graft')
  await expectSame(parent, child, 2)
  const [grafted] = child.log.events.flatMap((event) => (event.kind === 'grafted' ? [event] : []))
  const received = Buffer.from((await world.store.blobs.get(grafted?.sha256 ?? '')) ?? []).toString()
  const dateIn = (text: string) => /Today's date: (\w+ \w+ \d+ \d+)/.exec(text)?.[1]
  expect(dateIn(received)).toBeDefined()
  expect(dateIn(received)).not.toBe(dateIn(bodyOf(parent, 2)))
})

test('in another directory pi is refused: its prompt names it, and there is no session to resume', async () => {
  await open(steps)
  const parent = await parentOf(piHarness())
  const other = moved(piHarness(), 'directory')
  const replayed = await childOf(other, parent, 2, 'replay')
  expect(replayed.summary.rollouts).toMatchObject([{ end: 'infra', verdict: null, taints: ['REPLAY_DIVERGED'] }])
  expect(replaysOf(replayed).at(-1)?.detail).toContain('/tmp/other')
  const grafted = await childOf(other, parent, 2, 'graft')
  expect(grafted.summary.rollouts).toMatchObject([{ end: 'infra', verdict: null, taints: ['GRAFT_LOST'] }])
  expect(replaysOf(grafted).at(-1)?.detail).toContain('does not hold the results of its tools')
})

test('a server and a file in memory are in no copy: such a place is refused, gone on from without them, or replayed', async () => {
  const reach = 'curl -s --retry 9 --retry-connrefused -o /dev/null -w "%{http_code}" localhost:8123'
  // It answers before the turn ends: until then the process still has the name of what starts it.
  const serve = `nohup python3 -m http.server 8123 > /dev/null 2>&1 & echo held > /dev/shm/held; ${reach}`
  const ask = `cat /dev/shm/held; ${reach}`
  await open([{ shell: serve }, { shell: 'echo two > two' }, { shell: ask }, { say: 'done' }])
  const parent = await parentOf(piHarness())
  const kept = parent.events.flatMap((event) => (event.kind === 'snapshot' ? [event.without ?? []] : []))
  expect(kept).toHaveLength(3)
  for (const without of kept) {
    expect(without).toEqual([expect.stringMatching(/^the process python3 \(\d+\)$/), 'the file /dev/shm/held'])
  }
  await expect(childOf(piHarness(), parent, 2, 'graft')).rejects.toMatchObject({
    code: 'FORK_REFUSED',
    message: expect.stringMatching(/python3 \(\d+\), the file \/dev\/shm\/held/) as string,
  })
  const child = await childOf(piHarness(), parent, 2, 'graft', 'branch')
  expect(child.summary.rollouts).toMatchObject([{ end: 'completed', taints: [] }])
  expect(bodyOf(child, 3)).toContain('No such file or directory')
  expect(child.events).toContainEqual(
    expect.objectContaining({ name: 'fork.without', value: expect.stringContaining('python3') as string }),
  )
  const replayed = await childOf(piHarness(), parent, 2, 'replay')
  expect(bodyOf(replayed, 3)).toMatch(/held.*200/)
})
