/** A verifier whose machine gives it too little processor time: the verdict is that of a quiet machine, or it has no number. */
import { type ChildProcess, spawn } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { attempt, sql, terminal } from '../../src/envs/index.ts'
import { sqlDataSchema } from '../../src/envs/sql/data.ts'
import { openTaskBox } from '../../src/envs/open-box.ts'
import { verdictIn } from '../../src/envs/sql/sql.fixture.ts'
import { isStarved } from '../../src/reward/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const examples = join(import.meta.dirname, '../../examples/tasks')
const { signal } = new AbortController()

let sandbox: SandboxProvider
let root: string
let crowd: readonly ChildProcess[] = []

// Beside each box there are so many loops that it gets a fraction of a processor, each in a session of its own: where the kernel shares out by
// session all of them would count as one.
beforeAll(async () => {
  sandbox = dockerProvider()
  root = tempDir()
  crowd = Array.from({ length: 3 * availableParallelism() }, () =>
    spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore', detached: true }),
  )
})
afterAll(async () => {
  for (const one of crowd) one.kill('SIGKILL')
  await sandbox.close()
})

describe('on a machine that others use', () => {
  it('a right query that is slow for want of a processor scores 1, one that never ends 0', async () => {
    const task = (await sql.load(join(examples, 'sql/shop.json'))).find(({ name }) => name === 'shop-never-ordered')
    if (task === undefined) throw new Error('no task')
    const counts = (n: number) =>
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${n}) SELECT count(*) FROM n`
    const data = {
      ...sqlDataSchema.parse(task.data),
      golds: ['SELECT 2000000'],
      neighbours: { subsets: 0, rebuilds: 0 },
    }
    await using box = await openTaskBox(sandbox, sql.box(task), { labels: { role: 'probe' }, signal })
    const verdictWithin = async (verifyMs: number, query: string) => {
      const from = performance.now()
      const verdict = await verdictIn(box, { ...task, data: { ...data, limits: { executeMs: 300, verifyMs } } }, query)
      return { verdict, ms: performance.now() - from }
    }
    expect(await isStarved(box, { cpus: 1, signal })).toBe(true)
    // What the query takes here, by the clock: the limit is less, and more than it takes of a processor.
    const nothing = await verdictWithin(60_000, counts(1))
    const measured = await verdictWithin(60_000, counts(2_000_000))
    const limit = Math.round(0.6 * (measured.ms - nothing.ms))
    const late = await verdictWithin(limit, counts(2_000_000))
    expect(late.verdict, `within ${limit} ms`).toMatchObject({ status: 'scored', reward: 1 })
    expect(late.ms).toBeGreaterThan(limit)
    const { verdict: endless } = await verdictWithin(300, counts(3_000_000_000))
    expect(endless).toMatchObject({ status: 'scored', reward: 0, evidence: expect.stringContaining('timeout') })
  })

  it('tests that run out of time on what the agent left, and not without it, give no number', async () => {
    const folder = join(root, 'late')
    await cp(join(examples, 'terminal/log-forensics'), folder, { recursive: true })
    const work = `python3 -c 'for i in range(300_000_000): pass'`
    await writeFile(
      join(folder, 'tests/test.sh'),
      `if [ -e /workspace/report.json ]; then timeout 3 ${work} || exit; echo 1; else echo 0; fi > /logs/verifier/reward.txt\n`,
    )
    const [task] = await terminal.load(folder)
    if (task === undefined) throw new Error('no task')
    const script = { name: 'late', weight: 1, script: { steps: [{ shell: 'echo x > /workspace/report.json' }] } }
    expect(await attempt({ environment: terminal, task, script, sandbox, signal })).toMatchObject({
      status: 'infra_error',
      reward: null,
      reason: expect.stringContaining('too little of a processor'),
    })
  })
})
