import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { newId, sha256 } from '../../core/index.ts'
import { openStore } from '../../trajectory/index.ts'
import { handedJob, heldJob, JobFiles } from './job-files.ts'
import { PastStores } from './past-stores.ts'

const keepMs = 1000
let directory: string
let now = 0
beforeEach(async () => {
  now = 10_000
  directory = tempDir()
})

const clock = { now: () => now, monotonic: () => now }
const held = () => new JobFiles(join(directory, 'node-jobs'), heldJob)
const handed = () => new JobFiles(join(directory, 'node-handed'), handedJob)
const made = () => new PastStores({ directory, keepMs, held: held(), handed: handed(), clock })
const jobOf = (rolloutId: string) => ({
  lease: { jobId: newId(), session: newId(), token: 1 },
  group: { id: 'g' },
  slot: 0,
  attempt: 0,
  rolloutId,
})

/** A store that was recorded into. */
async function recorded(): Promise<void> {
  await using _store = await openStore(directory)
}

it('what was handed in is kept for its time, byte by byte, and its store goes as a whole', async () => {
  await made().tidy()
  await recorded()
  now += keepMs - 10
  const job = { ...jobOf(newId()), fault: null, at: now, rewound: 0 }
  await made().keep(job, Buffer.from('whole'))
  now += 11
  const due = made()
  await due.tidy()
  expect(due.isDue).toBe(false)
  expect(existsSync(join(directory, 'log.sqlite'))).toBe(false)
  await recorded()
  expect(await due.packed(job)).toEqual({ bytes: Buffer.from('whole'), digest: sha256('whole') })
  now += keepMs
  await made().tidy()
  expect(await handed().all()).toEqual([])
  expect(await readdir(join(directory, 'node-packs'))).toEqual([])
  expect(existsSync(join(directory, 'log.sqlite'))).toBe(true)
})

it('a store with what is not handed in stays until it is', async () => {
  await made().tidy()
  await recorded()
  const { rolloutId: _rollout, ...job } = jobOf(newId())
  await held().put(job)
  now += keepMs + 1
  const waits = made()
  await waits.tidy()
  expect(waits.isDue).toBe(true)
  expect(existsSync(join(directory, 'log.sqlite'))).toBe(true)
  await held().remove(job)
  await made().tidy()
  expect(existsSync(join(directory, 'log.sqlite'))).toBe(false)
})
