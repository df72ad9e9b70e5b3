/** `paddock backup` beside a `paddock serve` that records, after it was killed, into a folder and into a file, and back from there. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pack } from 'tar-stream'
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

/** An archive of a whole backup and, after it, these entries. */
async function tarWith(
  name: string,
  ...more: readonly { readonly name: string; readonly type?: 'symlink' | 'link'; readonly body?: string }[]
) {
  const tar = pack()
  for (const file of ['log.sqlite', 'catalogue.sqlite'])
    tar.entry({ name: `b/${file}` }, await readFile(join(directory, 'whole', file)))
  for (const { body = 'x', ...header } of more) {
    if (header.type === undefined) tar.entry(header, body)
    else tar.entry({ ...header, linkname: body })
  }
  tar.finalize()
  const bytes = await buffer(tar)
  await writeFile(join(directory, name), bytes)
  return bytes
}

it('restores records alone: an archive with anything else is refused by its name, and leaves nothing', async () => {
  expect((await paddock('backup', 'killed', '--into', 'whole')).code).toBe(0)
  await tarWith('good.tar')
  expect((await paddock('restore', 'good.tar', '--into', 'good')).code).toBe(0)
  const names = [
    'control-token',
    'tokens/ann.json',
    'paddock.config.ts',
    'node_modules/x/index.js',
    'lock',
    '../up',
    'blobs/../x',
    'blobs/ab/cd/abce',
    'log.sqlite-journal-x',
    'log.sqlite',
    'LOG.SQLITE',
    './log2.sqlite',
    'blobs/aa/bb/aabb.js',
    '.env',
    'catalogue.id',
  ]
  for (const name of names) {
    await tarWith('odd.tar', { name: `b/${name}` })
    const { code, err } = await paddock('restore', 'odd.tar', '--into', 'odd')
    expect([code, err]).toEqual([2, expect.stringContaining(`has the entry "b/${name}"`)])
  }
  for (const entry of [
    { name: 'b/log.sqlite-wal', type: 'symlink', body: '/etc/passwd' },
    { name: 'b/log.sqlite-shm', type: 'link', body: 'b/log.sqlite' },
  ] as const) {
    await tarWith('odd.tar', entry)
    expect((await paddock('restore', 'odd.tar', '--into', 'odd')).code).toBe(2)
  }
  expect((await readdir(directory)).filter((name) => /odd$|unfinished/.test(name))).toEqual([])
})

it('says where an archive is cut off, wherever that is, and leaves nothing', async () => {
  const blob = `b/blobs/ab/cd/abcd${'0'.repeat(60)}`
  const bytes = await tarWith('whole.tar', { name: blob, body: '\0'.repeat(3000) })
  const inBlob = bytes.length - 1024 - 3072 - 512
  const cuts = [
    0,
    1,
    511,
    512,
    600,
    1000,
    1536,
    3000,
    4608,
    inBlob - 512,
    inBlob,
    inBlob + 512,
    inBlob + 2000,
    bytes.length - 1536,
    bytes.length - 1024,
    bytes.length - 512,
    bytes.length - 1,
  ]
  for (const cut of cuts) {
    await writeFile(join(directory, 'cut.tar'), bytes.subarray(0, cut))
    const { code, err } = await paddock('restore', 'cut.tar', '--into', 'cut')
    expect([cut, code, err]).toEqual([cut, 2, expect.stringMatching(/USAGE: .*cut\.tar is cut off behind \d+ bytes/)])
  }
  expect((await readdir(directory)).filter((name) => /cut$|unfinished/.test(name))).toEqual([])
})
