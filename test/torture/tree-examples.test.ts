/** The trees of `examples/train/trees` and the hints of `examples/train/hints`, done by the Python client beside a real `paddock serve`, with real boxes. */
import { execFile } from 'node:child_process'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
let data: string
let serving: Serving
beforeAll(async () => {
  data = tempDir()
  serving = await serve(data)
})
afterAll(async () => {
  await serving.stop()
})

async function grow(example: string, tasks = join(root, 'examples/tasks/terminal')): Promise<Record<string, unknown>> {
  const { stdout } = await promisify(execFile)('python3', [join('examples/train', example)], {
    cwd: root,
    env: {
      ...process.env,
      PYTHONPATH: 'clients/python/src',
      PADDOCK_CONTROL_URL: serving.ready.control,
      PADDOCK_CONTROL_TOKEN: (await readFile(join(data, 'control-token'), 'utf8')).trim(),
      // The scripted engine is sure of all but its first words.
      PADDOCK_RISE: '-1',
      PADDOCK_TASKS: tasks,
    },
  })
  return JSON.parse(stdout) as Record<string, unknown>
}

it('a budget is spent where it is least known how it ends, and every sampled token is trained once', async () => {
  const { rollouts, forked, trained_tokens: trained, roots } = await grow('trees/trace.py')
  expect([rollouts, forked, (roots as readonly string[]).length]).toEqual([6, 2, 2])
  await using reader = await openReader(data)
  let sampled = 0
  for (const { id } of await reader.recorder.sessions({ limit: 1000 })) {
    const { segments } = await reader.recorder.session(id, { bodies: [] })
    for (const { origin, tokens } of segments) if (origin === 'sampled') sampled += tokens.length
  }
  expect(trained).toBe(sampled)
})

it('answers that hesitate after the result of a tool are sampled again', async () => {
  const { chosen, groups } = (await grow('trees/arpo.py')) as {
    chosen: Readonly<Record<string, readonly [call: number, rise: number]>>
    groups: readonly string[]
  }
  expect(groups).toHaveLength(1 + Object.keys(chosen).length)
  expect(Object.keys(chosen).length).toBeGreaterThan(0)
  for (const [call] of Object.values(chosen)) expect(call).toBeGreaterThan(1)
  await using reader = await openReader(data)
  for (const group of groups.slice(1)) {
    const members = await reader.catalogue.rollouts({ groupId: group })
    expect(members.map(({ end, labels }) => [end, Object.keys(chosen).includes(labels['fork.rollout'] ?? '')])).toEqual(
      [
        ['completed', true],
        ['completed', true],
      ],
    )
  }
})

it('a hint fades, beside groups without one, and its text reaches no harness', async () => {
  // The hint gets shorter where members succeed, so the script leaves nothing to chance.
  const tasks = join(data, 'tasks')
  await cp(join(root, 'examples/tasks/terminal/log-forensics'), join(tasks, 'log-forensics'), { recursive: true })
  const script = join(tasks, 'log-forensics/script.json')
  const { candidates } = JSON.parse(await readFile(script, 'utf8')) as { candidates: readonly { role: string }[] }
  await writeFile(script, JSON.stringify({ candidates: candidates.filter(({ role }) => role === 'oracle') }))
  const { run, rounds } = (await grow('hints/fade.py', tasks)) as {
    run: string
    rounds: readonly { readonly words: number; readonly with: number | null; readonly without: number | null }[]
  }
  expect(rounds).toEqual([14, 7, 3].map((words) => ({ words, with: 1, without: 1 })))
  await using reader = await openReader(data)
  for (const [step, { words }] of rounds.entries()) {
    for (const which of ['with', 'without']) {
      const members = await reader.catalogue.rollouts({ groupId: `${run}-${step}-${which}` })
      expect(members).toMatchObject([{ end: 'completed' }, { end: 'completed' }])
      for (const { id, labels } of members) {
        const hint = which === 'with' ? `hint of ${words} words` : undefined
        expect(labels['inject']).toBe(hint)
        for (const { id: sessionId } of await reader.recorder.sessions({ rolloutId: id })) {
          const log = await reader.recorder.session(sessionId)
          const seen = log.events.flatMap((event) => (event.kind === 'injected' ? [event] : []))
          expect(seen).toHaveLength(hint === undefined ? 0 : log.calls.length)
          for (const { edits } of seen) expect(edits).not.toBeNull()
          for (const { intent } of log.calls)
            expect(Buffer.from(intent.body).toString()).not.toContain('Count the lines')
        }
      }
    }
  }
})
