import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { commitFact, ids, intentFact, promptFact, sessionFact } from '../../testing/store/index.ts'
import { fsck } from '../fsck/index.ts'
import { announceOwner, liveOwner, openReader, openStore } from './index.ts'

let directory: string
beforeEach(async () => {
  directory = tempDir()
})

describe('ownership of a data directory', () => {
  it('belongs to one process, which a second one is told', async () => {
    await using store = await openStore(directory)
    announceOwner(store.directory, 'http://127.0.0.1:7')
    await expect(openStore(directory)).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      data: { pid: process.pid, controlUrl: 'http://127.0.0.1:7' },
      fix: expect.stringContaining(String(process.pid)) as string,
    })
  })

  it('is given up at closing', async () => {
    await (await openStore(directory)).close()
    expect(liveOwner(directory)).toBeNull()
    expect((await readdir(directory)).toSorted()).toEqual(['blobs', 'catalogue.sqlite', 'log.sqlite', 'owner.sqlite'])
  })

  it('is taken over from an owner that was killed', async () => {
    const script = `
      const { openStore } = await import(${JSON.stringify(new URL('./index.ts', import.meta.url).href)})
      await openStore(${JSON.stringify(directory)})
      process.kill(process.pid, 'SIGKILL')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
    expect(signal).toBe('SIGKILL')
    expect(JSON.parse(await readFile(join(directory, 'lock'), 'utf8'))).toMatchObject({ pid: child.pid })
    await using store = await openStore(directory)
    expect(liveOwner(store.directory)?.pid).toBe(process.pid)
  })

  it.each([
    ['another process got the pid', { startTicks: '1' }],
    ['the machine was started again', { bootId: 'before' }],
  ])('is taken over when %s', async (_what, change) => {
    await (await openStore(directory)).close()
    const me = { pid: process.pid, bootId: '', startTicks: '', lockedAt: 1, controlUrl: null, ...change }
    await writeFile(join(directory, 'lock'), JSON.stringify(me))
    await using store = await openStore(directory)
    expect(liveOwner(store.directory)?.lockedAt).toBeGreaterThan(1)
  })

  it('goes to exactly one of many that ask at once', async () => {
    const asked = await Promise.allSettled(Array.from({ length: 6 }, () => openStore(directory)))
    const got = asked.filter((end) => end.status === 'fulfilled')
    expect(got).toHaveLength(1)
    await got[0]?.value.close()
  })

  it('refuses a store of a newer program, lock given back', async () => {
    await (await openStore(directory)).close()
    const db = new Database(join(directory, 'log.sqlite'))
    db.prepare('INSERT INTO schema_version (version, applied_at) VALUES (99, 0)').run()
    db.close()
    await expect(openStore(directory)).rejects.toMatchObject({ code: 'STORE_SCHEMA' })
    await expect(openReader(directory)).rejects.toMatchObject({ code: 'STORE_SCHEMA' })
    expect(liveOwner(directory)).toBeNull()
  })

  it('says what is no store', async () => {
    await expect(openReader(directory)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await writeFile(join(directory, 'log.sqlite'), 'no database at all, however long this text is')
    await expect(openStore(directory)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    await writeFile(join(directory, 'catalogue.sqlite'), 'neither is this one, however long its text is')
    await expect(openStore(directory)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })
})

describe('the writer', () => {
  it('holds callers back above its limits and drops nothing', async () => {
    await using store = await openStore(directory, { limits: { maxBytes: 64 * 1024, maxRequests: 8 } })
    const session = sessionFact()
    await store.recorder.openSession(session)
    await store.recorder.flush()
    const all = Array.from({ length: 200 }, (_, seq) =>
      store.recorder.beginCall(intentFact(session.id, seq, `{"n":${seq}}${' '.repeat(20_000)}`)),
    )
    expect(store.load.requests).toBeLessThanOrEqual(8)
    expect(store.load.bytes).toBeLessThanOrEqual(64 * 1024)
    expect(store.load.waiting + store.load.requests).toBe(200)
    await Promise.all(all)
    expect((await store.recorder.session(session.id)).calls).toHaveLength(200)
  })

  it.each([
    ['in the journal', ''],
    ['in the journal and in the database', 'await recorder.flush()'],
  ])('keeps what it acknowledged once, found %s after a kill', async (_where, flush) => {
    const session = sessionFact()
    const intent = intentFact(session.id, 0, '{}')
    const script = `
      const { openStore } = await import(${JSON.stringify(new URL('./index.ts', import.meta.url).href)})
      const { recorder } = await openStore(${JSON.stringify(directory)})
      await recorder.flush()
      await recorder.openSession(${JSON.stringify(session)})
      await recorder.beginCall({ ...${JSON.stringify(intent)}, body: Buffer.from('{}') })
      ${flush}
      process.kill(process.pid, 'SIGKILL')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
    await once(child, 'exit')
    const left = (await readdir(directory)).filter((name) => name.includes('journal'))
    expect(left).toHaveLength(1)
    const store = await openStore(directory)
    const { calls } = await store.recorder.session(session.id)
    expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['interrupted'])
    expect(store.recovered.interruptedCalls).toBe(1)
    await expect(stat(join(directory, left[0] ?? ''))).rejects.toMatchObject({ code: 'ENOENT' })
    await store.close()
    expect((await fsck(directory)).problems).toEqual([])
  })

  it('shows a reader what was durable when it opened', async () => {
    await using store = await openStore(directory)
    const session = sessionFact()
    await store.recorder.openSession(session)
    for (let seq = 0; seq < 20; seq += 1) {
      await store.recorder.beginCall(intentFact(session.id, seq, '{}'))
      await using reader = await openReader(directory)
      expect((await reader.recorder.session(session.id)).calls).toHaveLength(seq + 1)
    }
  })

  it('lets readers in while facts go on coming', async () => {
    await using store = await openStore(directory)
    const session = sessionFact()
    await store.recorder.openSession(session)
    let going = true
    const writing = (async () => {
      for (let seq = 0; going; seq += 1) await store.recorder.beginCall(intentFact(session.id, seq, `{"n":${seq}}`))
    })()
    const counts: number[] = []
    for (let again = 0; again < 5; again += 1) counts.push((await store.recorder.session(session.id)).calls.length)
    going = false
    await writing
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
    expect(counts.at(-1)).toBeGreaterThan(0)
  })

  it('waits for the medium where that was asked for', async () => {
    await using store = await openStore(directory, { synchronous: 'full' })
    const session = sessionFact()
    await store.recorder.openSession(session)
    await Promise.all([0, 1, 2].map((seq) => store.recorder.beginCall(intentFact(session.id, seq, '{}'))))
    expect((await store.recorder.session(session.id)).calls).toHaveLength(3)
  })

  it('finishes what it accepted before it closes', async () => {
    const store = await openStore(directory)
    const session = sessionFact()
    const accepted = [store.recorder.openSession(session)]
    for (let seq = 0; seq < 50; seq += 1) {
      const intent = intentFact(session.id, seq, '{}')
      accepted.push(store.recorder.beginCall(intent))
      accepted.push(store.recorder.commitCall(commitFact(intent, [promptFact(intent, ids(4))])))
    }
    await store.close()
    await Promise.all(accepted)
    await expect(store.recorder.flush()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    await using reader = await openReader(directory)
    expect((await reader.recorder.session(session.id)).segments).toHaveLength(50)
  })

  it('counts the calls that it found in flight, once', async () => {
    const store = await openStore(directory)
    const session = sessionFact()
    await store.recorder.openSession(session)
    for (const seq of [0, 1]) await store.recorder.beginCall(intentFact(session.id, seq, '{}'))
    await store.close()
    const counts: number[] = []
    for (let again = 0; again < 2; again += 1) {
      const next = await openStore(directory)
      counts.push(next.recovered.interruptedCalls)
      await next.close()
    }
    expect(counts).toEqual([2, 0])
  })

  it('stores a growing conversation in proportion to what is new', async () => {
    const turns = 100
    const store = await openStore(directory)
    const session = sessionFact()
    await store.recorder.openSession(session)
    const messages: string[] = []
    let bodyBytes = 0
    for (let seq = 0; seq < turns; seq += 1) {
      // Text that does not compress: what is left of a body is what was saved by difference.
      messages.push(JSON.stringify({ role: 'user', content: noise(seq, 2000) }))
      const intent = intentFact(session.id, seq, `{"messages":[${messages.join(',')}],"tools":["${noise(0, 4000)}"]}`)
      bodyBytes += intent.body.byteLength
      await store.recorder.beginCall(intent)
    }
    await store.close()
    const stored = (await stat(join(directory, 'log.sqlite'))).size
    // Each text once in its run and once in a keyframe, as hexadecimal noise at half its length, plus the pages.
    expect(stored).toBeLessThan(turns * 2000 * 2)
    expect(bodyBytes / stored).toBeGreaterThan(25)
  })
})

function noise(seed: number, length: number): string {
  let state = seed * 7919 + 1
  let text = ''
  while (text.length < length) {
    state = (state * 48_271) % 2_147_483_647
    text += state.toString(16)
  }
  return text.slice(0, length)
}
