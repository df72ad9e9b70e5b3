/** `paddock backup` beside a `paddock serve` that records, after it was killed, into a folder and into a file, and back from there. */
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCli } from '../../src/cli/program.ts'
import { createToken } from '../../src/access/index.ts'
import { fsck, openReader, openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { serve as serveHere } from './here.ts'
import { chat, serve, type Serving } from './paddock.ts'

let directory: string
let data: string
let serving: Serving

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  serving = await serve(data)
})
afterAll(async () => {
  await serving?.stop()
})

async function paddock(...args: readonly string[]) {
  const said = { out: '', err: '' }
  const code = await runCli(args, {
    out: (text) => void (said.out += `${text}\n`),
    err: (text) => void (said.err += `${text}\n`),
    status: () => undefined,
    env: {},
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  return { code, ...said }
}

const call = (content: string) => chat(serving.ready, { messages: [{ role: 'user', content }] })

async function callsIn(store: string): Promise<number> {
  await using reader = await openReader(store)
  return (await reader.recorder.session(serving.ready.sessionId)).calls.length
}

/** What an owner of a copy finds: what came last stands in its journal until somebody opens it. */
async function callsOpened(copy: string): Promise<number> {
  await (await openStore(copy)).close()
  return callsIn(copy)
}

it('copies beside the owner, while it records: clean, with every call that was answered before', async () => {
  await call('one')
  const going = new AbortController()
  let answered = 1
  const recording = (async () => {
    for (; !going.signal.aborted; answered += 1) await (await call('more')).text()
  })()
  const before = answered
  const { code, out, err } = await paddock('backup', data, '--into', 'beside', '--json')
  going.abort()
  await recording
  expect([code, err]).toEqual([0, ''])
  expect(JSON.parse(out)).toMatchObject({ into: join(directory, 'beside'), problems: [] })
  const copied = await callsOpened(join(directory, 'beside'))
  expect(copied).toBeGreaterThanOrEqual(before)
  expect(copied).toBeLessThanOrEqual(answered)
  expect((await paddock('list', '--data', 'beside', '--no-config')).code).toBe(0)
})

it('leaves tokens and the lock behind', async () => {
  await createToken(data, { role: 'view', name: 'ann', days: 1, now: Date.now() })
  await paddock('backup', data, '--into', 'without')
  const names = (await readdir(join(directory, 'without'))).filter((name) => !/-(shm|wal)$/.test(name))
  expect(names.filter((name) => !/^(log|catalogue)\.sqlite|^blobs$/.test(name))).toEqual([])
})

it('writes a tar file, which is a data directory again where it is restored', async () => {
  const { code, out } = await paddock('backup', data, '--into', 'monday.tar', '--json')
  expect([code, JSON.parse(out).into]).toEqual([0, join(directory, 'monday.tar')])
  expect((await paddock('restore', 'monday.tar', '--into', 'monday')).code).toBe(0)
  const restored = join(directory, 'monday')
  expect((await fsck(restored)).problems).toEqual([])
  const copied = await callsOpened(restored)
  // The owner takes in what it wrote last a moment later.
  await expect.poll(() => callsIn(data)).toBe(copied)
  const again = await serveHere(restored)
  await chat(again.ready, { messages: [{ role: 'user', content: 'it goes on' }] })
  expect((await again.stop()).code).toBe(0)
  expect((await fsck(restored)).problems).toEqual([])
})

it('copies what an owner left that was killed, journal and all', async () => {
  await (await call('the last')).text()
  serving.kill('SIGKILL')
  await serving.ended
  expect((await paddock('backup', data, '--into', 'killed')).code).toBe(0)
  const again = await serveHere(join(directory, 'killed'))
  await again.stop()
  const { calls } = await (async () => {
    await using reader = await openReader(join(directory, 'killed'))
    return reader.recorder.session(serving.ready.sessionId)
  })()
  expect(calls.at(-1)?.commit?.outcome.kind).toBe('complete')
  expect((await fsck(join(directory, 'killed'))).problems).toEqual([])
})

it.each([
  ['a folder that holds something', ['backup', 'data', '--into', 'data'], 'USAGE'],
  ['a file that is there', ['backup', 'data', '--into', 'there.tar'], 'USAGE'],
  ['a store that is not there', ['backup', 'nowhere', '--into', 'x'], 'NOT_FOUND'],
  ['no place', ['backup', 'data'], 'USAGE'],
  ['a restore over a store', ['restore', 'data', '--into', 'data'], 'USAGE'],
  ['a restore of what is not there', ['restore', 'nowhere', '--into', 'x'], 'NOT_FOUND'],
  ['a restore of a file that is no backup', ['restore', 'there.tar', '--into', 'x'], 'USAGE'],
])('refuses %s', async (_what, args, code) => {
  await writeFile(join(directory, 'there.tar'), '')
  const { err, code: exit } = await paddock(...args)
  expect([exit, err]).toEqual([2, expect.stringContaining(code)])
})
