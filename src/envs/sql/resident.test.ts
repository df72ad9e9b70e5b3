/** The program that stays in an agent's box: what its statements share, and what other processes of the box can do to it. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { openTaskBox } from '../open-box.ts'
import { sqliteEngine } from './engines/sqlite.ts'
import { sql } from './index.ts'
import { residentIn } from './resident.ts'

const db = sqliteEngine.database
const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'
const limits = { timeoutMs: 60_000, maxRows: 50, maxBytes: 36_000, memoryMb: 256 }

describe.runIf(await requireDocker())('the resident program', () => {
  let sandbox: SandboxProvider
  let box: Box
  beforeAll(async () => {
    sandbox = dockerProvider()
    const [task] = await sql.load(join(import.meta.dirname, '../../../examples/tasks/sql/shop.json'))
    if (task === undefined) throw new Error('no task')
    box = await openTaskBox(sandbox, sql.box(task), { labels: { role: 'probe' }, signal: AbortSignal.any([]) })
  })
  afterAll(() => sandbox.close())

  const ask = (statement: string, o: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
    residentIn(box, sqliteEngine).ask(
      { op: 'query', db, sql: statement },
      { limits: { ...limits, timeoutMs: o.timeoutMs ?? limits.timeoutMs }, signal: o.signal ?? AbortSignal.any([]) },
    )

  /** What a process of the agent, who is the same user, finds out or does with python's `os` and the programs' ids. */
  async function inBox(code: string): Promise<string> {
    const found = `import os,signal,time
def read(p, what):
  try: return open(f'/proc/{p}/{what}', 'rb').read()
  except OSError: return b''
def all():
  return [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid() and b'Runs SQL in a box' in read(p, 'cmdline')]
top=min(all())
${code}`
    const result = await box.exec({ command: ['python3', '-c', found] })
    return new TextDecoder().decode(result.stdout) + new TextDecoder().decode(result.stderr)
  }

  test('answers several at once, each with its own answer', async () => {
    const slow = ask(endless, { timeoutMs: 400 })
    const quick = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => ask(`SELECT ${n}`)))
    expect(quick.map((answer) => (answer.status === 'ok' ? answer.rows : answer))).toEqual(
      [1n, 2n, 3n, 4n, 5n, 6n].map((n) => [[n]]),
    )
    expect(await slow).toMatchObject({ status: 'error', kind: 'timeout' })
  })

  test('a statement finds nothing of the one before in the same process', async () => {
    expect(await ask('SELECT changes(), last_insert_rowid(), total_changes()')).toMatchObject({ rows: [[0n, 0n, 0n]] })
    for (const leaving of [
      'BEGIN',
      'CREATE TEMP TABLE customers (a)',
      'PRAGMA case_sensitive_like = ON',
      'SELECT FROM',
    ]) {
      expect(await ask(leaving)).toMatchObject({ status: 'error' })
      expect(await ask("SELECT count(*) > 100, 'A' LIKE 'a' FROM customers")).toMatchObject({ rows: [[1n, 1n]] })
    }
  })

  test('whoever goes away takes the statement along', async () => {
    const leaving = new AbortController()
    const left = ask(endless, { signal: leaving.signal })
    await ask('SELECT 1')
    leaving.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    // The one that counts on and on would never be seen at rest.
    const resting = `while any(b') R ' in read(p, 'stat') for p in all()): time.sleep(0.02)
print('at rest')`
    expect(await inBox(resting)).toBe('at rest\n')
  })

  test("processes of the agent cannot look into it, and ending it is a failure of the agent's statement", async () => {
    await ask('SELECT 1')
    for (const place of ['fd', 'mem', 'environ']) {
      expect(
        await inBox(`p=f'/proc/{top}/${place}'\nprint(os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(1))`),
      ).toContain('PermissionError')
    }
    const doomed = ask(endless)
    await ask('SELECT 1')
    await inBox('os.kill(top, signal.SIGKILL)')
    expect(await doomed).toMatchObject({ status: 'error', kind: 'memory' })
    expect(await ask('SELECT 1')).toMatchObject({ status: 'ok' })
  })
})
