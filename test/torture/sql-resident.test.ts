/** The program that answers an agent's SQL, killed, stopped and frozen under load: right answers or typed failures, no other. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { engineOf } from '../../src/envs/sql/engines/index.ts'
import { sqlDataSchema } from '../../src/envs/sql/data.ts'
import { residentIn } from '../../src/envs/sql/resident.ts'
import { openTaskBox, sql } from '../../src/envs/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { sized } from './size.ts'

const seed = 20_261_122
const { signal } = new AbortController()
const sets = ['shop', 'orchard', 'harbor'] as const
const endless = {
  shop: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n',
  orchard: 'SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE hash(a.range, b.range) = 1',
  harbor: 'SELECT count(*) FROM ship a, ship b, ship c, ship d, ship e, ship f, ship g, ship h',
}

/** Numbers from 0 up to 1, the same ones for the same seed. */
function dice(from: number): () => number {
  let state = from
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

type Set = (typeof sets)[number]

/** A box of a set, with its program. Most of a test is waiting, so each has a box of its own, beside the others. */
async function opened(sandbox: SandboxProvider, set: Set) {
  const [task] = await sql.load(join(import.meta.dirname, `../../examples/tasks/sql/${set}.json`))
  if (task === undefined) throw new Error('no task')
  const box = await openTaskBox(sandbox, sql.box(task), { labels: { role: 'probe' }, signal })
  await sql.setup({ task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined })
  const engine = engineOf(sqlDataSchema.parse(task.data).database)
  const ask = (statement: string, timeoutMs = 20_000) =>
    residentIn(box, engine).ask(
      { op: 'query', db: engine.database, sql: statement },
      { limits: { timeoutMs, maxRows: 50, maxBytes: 36_000, memoryMb: 256 }, signal },
    )

  /** Sends a signal to the program (the eldest of its processes) or to the youngest of its children. */
  async function strike(whom: 'program' | 'child', name: string): Promise<void> {
    const code = `import os,signal
def named(p):
  try: return b'Runs SQL in a box' in open(f'/proc/{p}/cmdline','rb').read()
  except OSError: return False
ids=sorted(int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid() and named(p))
try: os.kill(ids[0 if '${whom}' == 'program' else -1], signal.${name})
except (IndexError, ProcessLookupError): pass`
    await box.exec({ command: ['python3', '-c', code] })
  }
  return { box, ask, strike }
}

describe.runIf(await requireDocker())('the program that answers SQL', () => {
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  test.concurrent.each(sets)(`of %s, killed under load, seed ${seed}`, async (set) => {
    const { ask, strike } = await opened(sandbox, set)
    const next = dice(seed)
    let right = 0
    let ended = 0
    for (let round = 0; round < sized(100, 20); round += 1) {
      let struck = false
      const striking = strike(next() < 0.5 ? 'program' : 'child', 'SIGKILL').finally(() => (struck = true))
      // Statements are quicker than a strike, so they go on until it came.
      while (!struck) {
        const asked = Array.from({ length: 1 + Math.floor(next() * 8) }, () => Math.floor(next() * 1e6))
        const answers = await Promise.all(asked.map((n) => ask(`SELECT ${n}`)))
        for (const [i, answer] of answers.entries()) {
          if (answer.status === 'ok') {
            expect('rows' in answer && answer.rows).toEqual([[BigInt(asked[i] ?? -1)]])
            right += 1
          } else {
            expect(answer.kind).toBe('memory')
            ended += 1
          }
        }
      }
      await striking
      // Whatever happened, the next one is answered.
      expect(await ask('SELECT 1')).toMatchObject({ status: 'ok', rows: [[1n]] })
    }
    expect(ended).toBeGreaterThan(0)
    expect(right).toBeGreaterThan(ended)
  })

  // What waits and what ends it is the same for every set.
  const some = sized<readonly Set[]>(sets, ['shop'])

  test.concurrent.each(some)('of %s, stopped, is ended and made anew', async (set) => {
    const { ask, strike } = await opened(sandbox, set)
    await ask('SELECT 1')
    await strike('program', 'SIGSTOP')
    expect(await ask('SELECT 1', 500)).toMatchObject({ status: 'error', kind: 'memory' })
    expect(await ask('SELECT 2')).toMatchObject({ status: 'ok', rows: [[2n]] })
  })

  test.concurrent.each(some)('of %s: time in which the box stood still is not the statement’s', async (set) => {
    const { box, ask } = await opened(sandbox, set)
    await ask('SELECT 1')
    const order: string[] = []
    const slow = ask(endless[set], 6000).then((answer) => order.push(answer.status === 'ok' ? 'ok' : answer.kind))
    await ask('SELECT 1')
    await box.freeze()
    await sleep(6500)
    await box.thaw()
    await ask('SELECT 1').then(() => order.push('quick'))
    await slow
    expect(order).toEqual(['quick', 'timeout'])
  })
})
