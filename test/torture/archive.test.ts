/** The archive of finished sessions over kills and hostile stores, and under the suite of every recorder. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { recorderContract } from '../../src/testing/store/index.ts'
import { type ObjectsStore, fsck, openReader, openStore, type OwnedStore } from '../../src/trajectory/index.ts'
import { archive, at, callsIn, fill, finished, open, places, said, server } from '../lab/archive.ts'

describe.each(Object.entries(places))('in %s', (_, place) => {
  it.each(['stored', 'named', 'dropped'])(
    'killed behind the step `%s`, the next owner goes on, and no export differs',
    async (step) => {
      const first = await open('data', null)
      await fill(first)
      const was = await said(first)
      await first.close()
      const runner = fileURLToPath(new URL('../kill/archive-runner.ts', import.meta.url))
      const killed = await new Promise((resolve) => {
        const store = JSON.stringify(place.store())
        execFile(process.execPath, [runner, at('data'), store, step], (error) => resolve(error?.signal))
      })
      expect(killed).toBe('SIGKILL')
      expect(await place.keys()).toHaveLength(1)
      {
        await using reader = await openReader(at('data'))
        expect(await said(reader)).toEqual(was)
      }
      expect((await fsck(at('data'))).problems).toEqual([])
      const again = await open('data', place.store())
      expect(await said(again)).toEqual(was)
      await archive(again)
      expect(await place.keys()).toHaveLength(finished)
      expect(await said(again)).toEqual(was)
      await again.close()
      expect((await fsck(at('data'))).problems).toEqual([])
    },
  )
})

describe('an object store that misbehaves', () => {
  const s3 = (): ObjectsStore => places['an object store']?.store() ?? { directory: '' }
  it.each([
    ['cuts what it keeps', { truncates: 1 }],
    ['gives another object', { mixesUp: 4 }],
    ['is busy', { slowDown: 2 }],
    ['fails', { fails: 2 }],
    ['cuts what it sends', { cut: 1, short: 1 }],
    ['ignores conditions', { ignoresConditions: true }],
  ])('that %s loses nothing', async (_, does) => {
    const store = await open('data', s3())
    await fill(store)
    const was = await said(store)
    Object.assign(server.does, does)
    for (let rounds = 0; rounds < 3; rounds += 1) await store.archiver?.round()
    expect(store.archiver?.state()).toMatchObject({ waiting: 0, away: null })
    expect(callsIn('data')).toBe(0)
    expect(await said(store)).toEqual(was)
  })

  it('that keeps other bytes of the same length under a key takes nothing out of the log', async () => {
    const store = await open('data', s3())
    await fill(store)
    const was = await said(store)
    server.does.mixesUp = 1000
    await store.archiver?.round()
    await store.archiver?.round()
    expect(store.archiver?.state()).toMatchObject({ away: expect.stringContaining('cannot be read back') as unknown })
    server.does.mixesUp = 0
    expect(await said(store)).toEqual(was)
  })
})

// The suite of every recorder, where each closed session is archived before anything is read.
for (const [name, place] of Object.entries(places)) {
  let store: OwnedStore | null = null
  recorderContract(`SQLite with an archive in ${name}`, async () => {
    store = await openStore(at('data'), { archive: { store: place.store(), pollMs: null } })
    const archived = (): OwnedStore['recorder'] => {
      const owner = store
      if (owner === null) throw new Error('it is closed')
      return new Proxy(owner.recorder, {
        get: (recorder, method) => {
          const value: unknown = Reflect.get(recorder, method)
          if (typeof value !== 'function') return value
          return async (...args: readonly unknown[]) => {
            if (method === 'session' || method === 'sessionOfCall') await owner.archiver?.round()
            return Reflect.apply(value, recorder, args) as unknown
          }
        },
      })
    }
    return {
      recorder: archived(),
      reader: async () => {
        await store?.archiver?.round()
        const reader = await openReader(at('data'))
        return { ...reader.recorder, close: () => reader.close() }
      },
      restart: async () => {
        await store?.close()
        store = await openStore(at('data'), { archive: { store: place.store(), pollMs: null } })
        return archived()
      },
      close: async () => store?.close(),
    }
  })
}
