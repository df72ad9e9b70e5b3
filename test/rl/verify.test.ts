/** Work that was done elsewhere, verified by a real `paddock serve`: search by its record, terminal and sql tasks in real boxes. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { type Header, pack } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createToken } from '../../src/access/index.ts'
import { fsck } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Json, Trainer } from './trainer.ts'

const examples = fileURLToPath(new URL('../../examples/tasks', import.meta.url))
let directory: string
let data: string
let serving: Serving
let trainer: Trainer

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await start()
  for (const environment of ['search', 'terminal', 'sql']) {
    const tasks = join(examples, environment)
    await trainer.ask('POST', '/runs', { run_id: environment, environment, tasks })
  }
})
afterAll(async () => {
  await serving.stop()
})

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  serving = await serve(data, [], env)
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

interface Verified {
  readonly state: string
  readonly verdict: { readonly status: string; readonly reward: number | null; readonly evidence: string } | null
}

type Entry = Partial<Header> & { readonly name: string; readonly body?: string }

async function archiveOf(...entries: readonly Entry[]): Promise<string> {
  const tar = pack()
  // The same work is the same bytes: what is asked again under its key.
  for (const { body, ...header } of entries) tar.entry({ mtime: new Date(0), ...header }, body ?? '')
  tar.finalize()
  return (await buffer(tar)).toString('base64')
}
const verify = (body: Json): Promise<Verified> => trainer.ask('POST', '/verify', body)
const refused = (body: Json) => trainer.refused('POST', '/verify', body)

const found = {
  searches: [{ query: 'Theskdrein Theatre founded', hits: ['d03471'] }],
  opened: ['d03471'],
  answer: { text: '1842', citations: ['d03471'] },
}
const record = (more: Json = {}) =>
  archiveOf({ name: 'paddock/search.json', body: JSON.stringify({ ...found, ...more }) })
const q001 = { run_id: 'search', task: 'q001' }

describe('work that was done elsewhere', () => {
  it('gets a verdict with its evidence, and the same again for the same key', async () => {
    const asked = { ...q001, idempotency_key: 'a/1 of my rollouts', archive: await record() }
    const first = await verify(asked)
    expect(first).toMatchObject({
      idempotency_key: 'a/1 of my rollouts',
      state: 'done',
      verdict: {
        status: 'scored',
        reward: 1,
        reason: null,
        trust: 'host',
        components: { em: 1, citations_grounded: 1 },
        verifier: { id: 'search/q001' },
        artifacts: [{ path: '/paddock/search.json' }],
      },
    })
    expect(first.verdict?.evidence).toContain('nothing of how it was done was looked at')
    expect(await verify(asked)).toEqual(first)
    const wrong = { ...asked, archive: await record({ answer: { text: '1804', citations: ['d03471'] } }) }
    expect(await refused(wrong)).toEqual([409, 'VERIFY_KEY_TAKEN'])
    expect(await verify({ ...wrong, idempotency_key: 'a2' })).toMatchObject({
      verdict: { status: 'scored', reward: 0 },
    })
    expect(await trainer.ask('GET', `/verify/${encodeURIComponent(asked.idempotency_key)}`)).toEqual(first)
    expect(await trainer.refused('GET', '/verify/never-asked')).toEqual([404, 'NOT_FOUND'])
  })

  it('is asked for by the Python client, which says the same of the same files', async () => {
    const program = `
import json, os
from paddock_rl import Paddock
paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"])
files = {"/paddock/search.json": os.environ["RECORD"]}
first, again = (paddock.verify("by python", "q001", run_id="search", files=files) for _ in range(2))
print(json.dumps([first, first == again == paddock.verification("by python")]))`
    const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    const env = {
      ...process.env,
      PYTHONPATH: fileURLToPath(new URL('../../clients/python/src', import.meta.url)),
      PADDOCK_CONTROL_URL: serving.ready.control,
      PADDOCK_CONTROL_TOKEN: token,
      RECORD: JSON.stringify(found),
    }
    const { stdout } = await promisify(execFile)('python3', ['-c', program], { env })
    expect(JSON.parse(stdout)).toMatchObject([{ state: 'done', verdict: { reward: 1 } }, true])
  })

  it('many at once under one key are one verification', async () => {
    const asked = { ...q001, idempotency_key: 'once', archive: await record() }
    const all = await Promise.all(Array.from({ length: 12 }, () => verify(asked)))
    for (const one of all) expect(one).toEqual(all[0])
  })

  it('is refused by name, with nothing written, where its archive is hostile', async () => {
    const before = await readdir(directory, { recursive: true })
    const good = { name: 'paddock/search.json', body: JSON.stringify(found) }
    const hostile: readonly (readonly [string, readonly Entry[]])[] = [
      ['up', [good, { name: '../../../../tmp/x', body: 'x' }]],
      ['absolute', [{ name: '/tmp/x', body: 'x' }]],
      ['link', [{ name: 'paddock/search.json', type: 'symlink', linkname: '/etc/passwd' }]],
      ['hard link', [good, { name: 'paddock/h', type: 'link', linkname: '/etc/passwd' }]],
      ['device', [{ name: 'paddock/search.json', type: 'character-device', devmajor: 1, devminor: 3 }]],
      ['fifo', [{ name: 'paddock/search.json', type: 'fifo' }]],
      ['elsewhere', [good, { name: 'etc/passwd', body: 'x' }]],
    ]
    for (const [what, entries] of hostile) {
      const asked = { ...q001, idempotency_key: `hostile ${what}`, archive: await archiveOf(...entries) }
      expect(await refused(asked), what).toEqual([400, 'WORK_REFUSED'])
      // What was refused stands for nothing: its key is free.
      expect(await trainer.refused('GET', `/verify/hostile%20${encodeURIComponent(what)}`)).toEqual([404, 'NOT_FOUND'])
    }
    const bomb = gzipSync(Buffer.alloc(256 << 20)).toString('base64')
    expect(await refused({ ...q001, idempotency_key: 'bomb', archive: bomb })).toEqual([400, 'WORK_REFUSED'])
    const made = (await readdir(directory, { recursive: true })).filter((name) => !before.includes(name))
    expect(made.filter((name) => !/journal|\.sqlite|compile/.test(name))).toEqual([])
  })

  it('is refused where it is none of the task, or the task takes none', async () => {
    const key = { idempotency_key: 'k' }
    for (const body of [
      { ...q001, ...key, archive: '%%%' },
      { ...q001, ...key },
      { ...q001, answer: 'x' },
      { ...q001, idempotency_key: 'a\nb', answer: 'x' },
      { ...q001, ...key, answer: 'x', more: 1 },
    ])
      expect(await refused(body)).toEqual([400, 'BODY_INVALID_SHAPE'])
    // Scored by what was cited too: an answer alone would be an unjust 0.
    expect(await refused({ ...q001, ...key, answer: '1842' })).toEqual([400, 'WORK_REFUSED'])
    const unread = await archiveOf({ name: 'paddock/search.json', body: '{"searches": 1}' })
    expect(await refused({ ...q001, ...key, archive: unread })).toEqual([400, 'WORK_REFUSED'])
    expect(await refused({ ...q001, ...key, task: 'q999', answer: 'x' })).toEqual([404, 'NOT_FOUND'])
    expect(await refused({ ...key, task: 'f'.repeat(64), answer: 'x' })).toEqual([404, 'NOT_FOUND'])
    expect(await refused({ ...key, run_id: 'none', task: 'q001', answer: 'x' })).toEqual([404, 'NOT_FOUND'])
    const terminal = { run_id: 'terminal', task: 'log-forensics', ...key }
    expect(await refused({ ...terminal, answer: 'x' })).toEqual([400, 'WORK_REFUSED'])
    const tests = await archiveOf({ name: 'tests/test.sh', body: 'echo 1 > /logs/verifier/reward.txt' })
    expect(await refused({ ...terminal, archive: tests })).toEqual([400, 'WORK_REFUSED'])
    const bare = { name: 'sum', instruction: 'Add 2 and 2.' }
    await trainer.ask('POST', '/runs', { run_id: 'bare' })
    await trainer.ask('POST', '/runs/bare/groups', { groups: [{ group_id: 'g', task: bare, n: 1 }] })
    const { task } = await trainer.rows('g', null).catch(() => ({ task: null }))
    if (task !== null)
      expect(await refused({ ...key, task: task.digest, answer: '4' })).toEqual([501, 'TASK_UNSUPPORTED'])
  })

  it('is for admins and trainers', async () => {
    const body = { ...q001, idempotency_key: 'roles', archive: await record() }
    for (const role of ['trainer', 'annotate', 'view', 'node'] as const) {
      const { token } = await createToken(data, { name: role, role, days: 1, now: Date.now() })
      const other = new Trainer(serving, token)
      const wanted = role === 'trainer' ? 200 : 403
      expect([role, (await other.send('POST', '/verify', body)).status]).toEqual([role, wanted])
      expect([role, (await other.send('GET', '/verify/roles')).status]).toEqual([role, wanted])
    }
  })
})

describe('in real boxes', () => {
  const report = (attacker: string) =>
    archiveOf({
      name: 'workspace/report.json',
      body: JSON.stringify({ attacker, failed_logins: 1, first_success: '2026-03-03T03:06:13Z', stolen: [] }),
    })
  const terminal = { run_id: 'terminal', task: 'log-forensics' }

  it("files are unpacked in the verifier's box, and an answer in words is run there", async () => {
    const files = await verify({ ...terminal, idempotency_key: 'wrong', archive: await report('203.0.113.77') })
    // What the tests found in the file that was brought.
    expect(files).toMatchObject({
      state: 'done',
      verdict: {
        status: 'scored',
        reward: 0,
        trust: 'separate',
        components: { is_object_with_exact_keys: 1, attacker: 1, first_success: 1, failed_logins: 0 },
      },
    })
    const sql = { run_id: 'sql', task: 'shop-customers-by-country' }
    const right = 'SELECT country, count(*) FROM customers GROUP BY country ORDER BY count(*) DESC, country'
    expect(await verify({ ...sql, idempotency_key: 'right', answer: right })).toMatchObject({
      verdict: { status: 'scored', reward: 1, components: { result: 1 } },
    })
    expect(await verify({ ...sql, idempotency_key: 'none', answer: 'DROP TABLE customers' })).toMatchObject({
      verdict: { status: 'hacked', reward: 0 },
    })
  })

  it('one that takes longer than somebody waits is looked for by its key', async () => {
    const asked = { ...terminal, idempotency_key: 'later', archive: await report('5.6.7.8') }
    expect(await trainer.ask('POST', '/verify?wait_s=0', asked)).toMatchObject({ state: 'pending', verdict: null })
    expect(await refused({ ...asked, archive: await report('0.0.0.0') })).toEqual([409, 'VERIFY_KEY_TAKEN'])
    expect(await trainer.ask('GET', '/verify/later?wait_s=60')).toMatchObject({ state: 'done', verdict: { reward: 0 } })
  })

  it('a daemon that is gone scores nothing and frees the key; what was verified stays', async () => {
    const before = await trainer.ask<{ task_digest: string }>('GET', '/verify/later')
    await serving.stop()
    await start({ DOCKER_HOST: `unix://${join(directory, 'no.sock')}` })
    expect(await trainer.ask('GET', '/verify/later')).toEqual(before)
    expect(await verify({ ...terminal, idempotency_key: 'later', archive: await report('5.6.7.8') })).toEqual(before)
    const asked = { task: { digest: before.task_digest }, idempotency_key: 'faulty', archive: await report('9.9.9.9') }
    expect(await refused(asked)).toEqual([503, 'VERIFY_FAILED'])
    expect(await trainer.refused('GET', '/verify/faulty')).toEqual([503, 'VERIFY_FAILED'])
    await serving.stop()
    await start()
    expect(await trainer.refused('GET', '/verify/faulty')).toEqual([404, 'NOT_FOUND'])
    expect(await verify(asked)).toMatchObject({ state: 'done', verdict: { status: 'scored', reward: 0 } })
    expect((await fsck(data)).problems).toEqual([])
  })
})
