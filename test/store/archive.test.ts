/** Finished sessions in an archive: read, exported, checked and copied as if they were in the log. Kills and hostile stores: torture. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../../src/testing/store/index.ts'
import { type ObjectsStore, backup, fsck, openReader, restore, salvage } from '../../src/trajectory/index.ts'
import { archive, at, callsIn, fill, finished, open, places, said, server } from '../lab/archive.ts'

describe.each(Object.entries(places))('in %s', (_, place) => {
  it('finished sessions leave the log, and are read, exported and checked as before', async () => {
    const store = await open('data', place.store())
    await fill(store)
    const goesOn = sessionFact()
    await store.recorder.openSession(goesOn)
    await using reader = await openReader(at('data'))
    const was = await said(store)
    expect(await said(reader)).toEqual(was)
    await archive(store)
    expect(await place.keys()).toHaveLength(finished)
    expect(callsIn('data')).toBe(0)
    expect(await said(store)).toEqual(was)
    // One that was open before goes on too.
    expect(await said(reader)).toEqual(was)
    const [first] = await reader.recorder.sessions()
    const call = (await reader.recorder.session(first?.id ?? '')).calls[0]?.intent.id ?? ''
    expect([await store.recorder.sessionOfCall(call), await reader.recorder.sessionOfCall(call)]).toEqual([
      first?.id,
      first?.id,
    ])
    await store.close()
    expect((await fsck(at('data'))).problems).toEqual([])
    const again = await open('data', null)
    expect(again.recovered).toEqual({ interruptedCalls: 0, damaged: 0 })
    expect(await said(again)).toEqual(was)
  })

  it('a session goes when its rollout has ended and its calls have', async () => {
    const store = await open('data', place.store())
    const [going = ''] = await recordRollouts(store, [{ end: null, reward: null }])
    for (const { id } of await store.recorder.sessions()) await store.recorder.closeSession(id, 9)
    const open_ = sessionFact()
    await store.recorder.openSession(open_)
    const intent = intentFact(open_.id, 0, '{}')
    await store.recorder.beginCall(intent)
    await archive(store)
    expect(await place.keys()).toEqual([])
    await store.recorder.closeSession(open_.id, 9)
    await archive(store)
    expect(await place.keys()).toEqual([])
    await store.recorder.commitCall(commitFact(intent, [promptFact(intent, ids(9))]))
    await archive(store)
    expect(await place.keys()).toHaveLength(1)
    await store.catalogue.endRollout(going, 10, 'completed', '')
    await archive(store)
    expect(await place.keys()).toHaveLength(2)
  })

  it('what is told of it afterwards stands in the log and counts; segments of others hang on its own', async () => {
    const store = await open('data', place.store())
    const session = sessionFact()
    await store.recorder.openSession(session)
    const calls = [0, 1].map((seq) => intentFact(session.id, seq, '{}'))
    const prompts = calls.map((intent) => promptFact(intent, ids(9)))
    for (const [n, intent] of calls.entries()) {
      await store.recorder.beginCall(intent)
      await store.recorder.commitCall(commitFact(intent, prompts.slice(n, n + 1)))
    }
    const [one, two] = calls.map(({ id }) => id) as [string, string]
    await store.recorder.settleDelivery(one, 'sent')
    await store.recorder.closeSession(session.id, 9)
    await archive(store)
    await store.recorder.settleDelivery(two, 'sent')
    await store.recorder.supersede(one, two)
    await store.recorder.appendEvent({
      id: newId(),
      at: 11,
      rolloutId: null,
      sessionId: session.id,
      kind: 'handed_in',
      digest: 'd',
      sizeBytes: 1,
      by: 'late',
    })
    await expect(store.recorder.supersede(one, two)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
    await expect(store.recorder.beginCall(intentFact(session.id, 2, '{}'))).rejects.toMatchObject({
      code: 'SESSION_CLOSED',
    })
    await store.close()
    expect((await fsck(at('data'))).problems).toEqual([])
    const again = await open('data', null)
    expect(again.recovered.damaged).toBe(0)
    const read = await again.recorder.session(session.id)
    expect(read.calls.map(({ delivery, superseded }) => [delivery, superseded])).toEqual([
      ['sent', true],
      ['sent', false],
    ])
    expect(read.events).toHaveLength(1)
    const fork = sessionFact({ forkedFrom: null })
    await again.recorder.openSession(fork)
    const goesOn = intentFact(fork.id, 0, '{}')
    await again.recorder.beginCall(goesOn)
    const parent = { segmentId: prompts[0]?.id ?? '', offset: 9 }
    await again.recorder.commitCall(
      commitFact(goesOn, [sampledFact(goesOn, ids(3), new Float32Array(3).fill(-1), parent)]),
    )
    await again.close()
    const db = new Database(join(at('data'), 'log.sqlite'))
    db.exec('DELETE FROM supersessions')
    db.close()
    expect((await fsck(at('data'))).problems.map(({ what }) => what).join()).toContain('records are missing')
  })

  it('while it is away sessions stay in the log, recording goes on, and they go when it is back', async () => {
    const store = await open('data', place.store())
    await fill(store)
    const was = await said(store)
    await place.isAway(true)
    await store.archiver?.round()
    expect(store.archiver?.state()).toMatchObject({
      waiting: finished,
      failures: 1,
      away: expect.any(String) as unknown,
    })
    expect(await said(store)).toEqual(was)
    await place.isAway(false)
    await store.archiver?.round()
    expect(store.archiver?.state()).toMatchObject({ waiting: 0, away: null })
    await place.isAway(true)
    await store.close()
    // A start does not wait for it, and what is there alone is told by one error.
    const again = await open('data', place.store())
    const [first] = await again.recorder.sessions()
    await expect(again.recorder.session(first?.id ?? '')).rejects.toMatchObject({ code: 'ARCHIVE_UNAVAILABLE' })
    await place.isAway(false)
    expect(await said(again)).toEqual(was)
  })

  it('an object that is missing or damaged is told by its key, and never read', async () => {
    const store = await open('data', place.store())
    await fill(store)
    await archive(store)
    await store.close()
    const [gone = '', other = ''] = await place.keys()
    await place.change(gone, null)
    await place.change(other, Buffer.from('other'))
    const { problems } = await fsck(at('data'))
    expect(problems.map(({ what }) => what.split(':')[0])).toEqual(
      expect.arrayContaining(['ARCHIVE_MISSING', 'STORE_CORRUPT']),
    )
    const told = problems.map(({ what }) => what).join('\n')
    for (const key of [gone, other]) expect(told).toContain(key)
    await expect(backup(at('data'), at('copy'))).rejects.toMatchObject({
      code: expect.stringMatching(/ARCHIVE_MISSING|STORE_CORRUPT/) as unknown,
    })
    // What is left is taken over; what lost its records is tainted.
    const report = await salvage(at('data'), at('salvaged'))
    expect(report.sessions.cut).toHaveLength(2)
    expect(report.sessions.whole).toBe(finished - 2)
    expect((await fsck(at('salvaged'))).problems).toEqual([])
  })

  it('a backup has the objects; a restore of it needs no archive, and brings them into one of its own', async () => {
    const store = await open('data', place.store())
    await fill(store)
    const was = await said(store)
    await archive(store)
    await backup(at('data'), at('copy'))
    await store.close()
    for (const key of await place.keys()) await place.change(key, null)
    await restore(at('copy'), at('new'))
    expect((await fsck(at('new'))).problems).toEqual([])
    await using plain = await openReader(at('new'))
    expect(await said(plain)).toEqual(was)
    const restored = await open('new', place.store())
    await archive(restored)
    expect(await place.keys()).toHaveLength(finished)
    expect((await readdir(at('new/archive'), { recursive: true })).filter((name) => name.length > 60)).toEqual([])
    expect(await said(restored)).toEqual(was)
    await restored.close()
    expect((await fsck(at('new'))).problems).toEqual([])
  })

  it('removes what nothing names once it is old, and nothing else', async () => {
    const store = await open('data', place.store())
    await fill(store)
    await archive(store)
    const named = await place.keys()
    const [one = ''] = named
    const orphan = `${one.slice(0, -62)}${'ab'.repeat(31)}`
    await place.change(orphan, Buffer.from('left by a put that nobody named'))
    for (const key of named) await place.age(key, 48 * 3600_000)
    await place.age(orphan, 1000)
    expect(await store.archiver?.sweep()).toBe(0)
    await place.age(orphan, 48 * 3600_000)
    expect(await store.archiver?.sweep()).toBe(1)
    expect((await place.keys()).toSorted()).toEqual(named.toSorted())
  })

  it('another place than it is in is refused', async () => {
    await (await open('data', place.store())).close()
    const other: ObjectsStore =
      's3' in place.store() ? { directory: at('shared') } : (places['an object store']?.store() ?? { directory: '' })
    await expect(open('data', other)).rejects.toMatchObject({ code: 'ARCHIVE_OTHER' })
  })
})

it('a store that refuses is told at the start; a directory that is not there, too', async () => {
  server.does.forbids = true
  await expect(open('data', places['an object store']?.store() ?? null)).rejects.toMatchObject({
    code: 'ARCHIVE_REFUSED',
  })
  await expect(open('other', { directory: at('nowhere') })).rejects.toMatchObject({ code: 'ARCHIVE_REFUSED' })
})
