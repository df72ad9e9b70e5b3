import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import {
  blobsContract,
  catalogueContract,
  catalogueOutcomes,
  memoryContract,
  queueContract,
  recorderContract,
  trainerBookContract,
} from '../../testing/store/index.ts'
import { openReader, openStore, type OwnedStore } from './index.ts'

interface Made {
  readonly directory: string
  readonly store: OwnedStore
  reopen(): Promise<OwnedStore>
  close(): Promise<void>
}

async function makeStore(directory = tempDir()): Promise<Made> {
  let store = await openStore(directory)
  return {
    directory,
    get store() {
      return store
    },
    async reopen() {
      await store.close()
      store = await openStore(directory)
      return store
    },
    async close() {
      await store.close()
    },
  }
}

// One log for all of its tests, and opened anew where a test restarts it.
let log: Made | null = null
const logDirectory = tempDir()
afterAll(async () => log?.close())

recorderContract('SQLite', async () => {
  log ??= await makeStore(logDirectory)
  const made = log
  return {
    recorder: made.store.recorder,
    reader: async () => {
      const reader = await openReader(made.directory)
      return { ...reader.recorder, close: () => reader.close() }
    },
    restart: async () => (await made.reopen()).recorder,
    close: () => Promise.resolve(),
  }
})

catalogueContract('SQLite', async () => {
  const made = await makeStore()
  return {
    catalogue: made.store.catalogue,
    reader: async () => {
      const reader = await openReader(made.directory)
      return { ...reader.catalogue, close: () => reader.close() }
    },
    close: () => made.close(),
  }
})

queueContract('SQLite', async () => {
  const made = await makeStore()
  return { queue: made.store.queue, outcomes: catalogueOutcomes(made.store.catalogue), close: () => made.close() }
})

trainerBookContract('SQLite', async () => {
  const made = await makeStore()
  return { trainer: made.store.trainer, catalogue: made.store.catalogue, close: () => made.close() }
})

memoryContract('SQLite', async () => {
  const made = await makeStore()
  return { trainer: made.store.trainer, catalogue: made.store.catalogue, close: () => made.close() }
})

blobsContract('directory', async () => {
  const made = await makeStore()
  return {
    blobs: made.store.blobs,
    corrupt: (digest) =>
      writeFile(join(made.directory, 'blobs', digest.slice(0, 2), digest.slice(2, 4), digest), 'other'),
    close: () => made.close(),
  }
})
