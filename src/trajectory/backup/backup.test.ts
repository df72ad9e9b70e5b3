/** Copies of a store that is recorded to, of one that was killed, and of a closed one: clean, openable, and of one moment. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { recordRollouts } from '../../testing/exporter/recorded.ts'
import { fsck } from '../fsck/index.ts'
import { openReader, openStore } from '../store/index.ts'
import { backup } from './index.ts'

let directory: string
let data: string
beforeEach(async () => {
  directory = tempDir()
  data = join(directory, 'data')
})

it('copies a closed store: the same runs, rollouts and sessions, and a store that goes on from there', async () => {
  const store = await openStore(data)
  const ids = await recordRollouts(store, [{ reward: 1, turns: 3 }, { reward: 0 }])
  const blob = await store.blobs.put(Buffer.from('evidence'))
  await store.close()
  const into = join(directory, 'copy')
  expect(await backup(data, into)).toMatchObject({ into, blobs: 1 })
  expect((await fsck(into)).problems).toEqual([])
  expect((await readdir(directory)).toSorted()).toEqual(['copy', 'data'])
  await using copy = await openStore(into)
  expect(copy.recovered).toMatchObject({ damaged: 0, interruptedCalls: 0 })
  await using was = await openReader(data)
  for (const id of ids) {
    expect(await copy.catalogue.rollout(id)).toEqual(await was.catalogue.rollout(id))
    for (const { id: session } of await was.recorder.sessions({ rolloutId: id })) {
      expect(await copy.recorder.session(session)).toEqual(await was.recorder.session(session))
    }
  }
  expect(Buffer.from(await copy.blobs.get(blob)).toString()).toBe('evidence')
  expect(await recordRollouts(copy, [{ reward: 1 }])).toHaveLength(1)
})

it('copies while rollouts are recorded: each copy is clean, holds what had ended by then, and opens', async () => {
  const store = await openStore(data)
  const ended: string[] = []
  const going = new AbortController()
  const recording = (async () => {
    while (!going.signal.aborted) ended.push(...(await recordRollouts(store, [{ reward: 1, turns: 2 }, { reward: 0 }])))
  })()
  try {
    for (const name of ['first', 'second', 'third']) {
      const wanted = ended.length + 4
      while (ended.length < wanted) await setImmediate()
      const by = [...ended]
      const into = join(directory, name)
      await backup(data, into)
      expect((await fsck(into)).problems).toEqual([])
      {
        await using copy = await openStore(into)
        expect(copy.recovered.damaged).toBe(0)
        for (const id of by) {
          expect((await copy.catalogue.rollout(id)).end).toBe('completed')
          const [session] = await copy.recorder.sessions({ rolloutId: id })
          expect((await copy.recorder.session(session?.id ?? '')).closedAt).not.toBeNull()
        }
      }
      // What was in flight at that moment has its end by now, and nothing that was ingested is damaged.
      expect((await fsck(into)).problems).toEqual([])
    }
  } finally {
    going.abort()
    await recording
    await store.close()
  }
  expect((await fsck(data)).problems).toEqual([])
})

it('writes over nothing, and leaves nothing behind where it cannot go on', async () => {
  await expect(backup(data, join(directory, 'copy'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const store = await openStore(data)
  await recordRollouts(store, [{ reward: 1 }])
  await store.close()
  await expect(backup(data, data)).rejects.toMatchObject({ code: 'USAGE' })
  expect(await readdir(directory)).toEqual(['data'])
})
