import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { newId } from '../../core/index.ts'
import { sessionFact } from '../../testing/store/index.ts'
import { frameOf, Journal } from '../journal/index.ts'
import { fsck } from '../fsck/index.ts'
import { openStore } from '../store/index.ts'
import type { LogEntry } from './entries.ts'

let directory: string
beforeEach(async () => {
  directory = tempDir()
  await (await openStore(directory)).close()
})

/** Leaves entries behind as a killed owner does. */
function leave(generation: number, ...entries: readonly LogEntry[]): void {
  const journal = new Journal(join(directory, 'log.sqlite'), generation)
  for (const entry of entries) journal.append(frameOf(entry))
  journal.close()
}

it('keeps an entry that the log refuses beside it, and ingests those around it', async () => {
  const [one, other] = [sessionFact(), sessionFact()]
  leave(
    50,
    { head: { op: 'openSession', session: one }, parts: [] },
    { head: { op: 'settleDelivery', id: newId(), delivery: 'sent' }, parts: [] },
    { head: { op: 'openSession', session: one }, parts: [Buffer.from('kept')] },
    { head: { op: 'openSession', session: other }, parts: [] },
  )
  const store = await openStore(directory)
  expect((await store.recorder.sessions()).map(({ id }) => id)).toEqual([one.id, other.id])
  await store.close()
  const { problems } = await fsck(directory)
  expect(problems.map(({ what }) => what)).toEqual([
    expect.stringContaining('which is not there'),
    expect.stringMatching(/UNIQUE constraint failed.*openSession/),
  ])
})

it('takes every entry in once, however often it is opened', async () => {
  const session = sessionFact()
  leave(50, { head: { op: 'openSession', session }, parts: [] })
  for (let again = 0; again < 3; again += 1) {
    const store = await openStore(directory)
    expect(await store.recorder.sessions()).toEqual([session])
    await store.close()
  }
  expect((await fsck(directory)).problems).toEqual([])
})
