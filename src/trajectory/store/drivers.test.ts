import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blobsContract, catalogueContract, queueContract, recorderContract } from '../../testing/store/index.ts'
import { openReader, openStore, type OwnedStore } from './index.ts'

async function fresh(): Promise<{ directory: string; store: OwnedStore; close(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-store-'))
  const store = await openStore(directory)
  return {
    directory,
    store,
    close: async () => {
      await store.close()
      await rm(directory, { recursive: true })
    },
  }
}

recorderContract('sqlite', async () => {
  const { directory, store } = await fresh()
  let open = store
  return {
    recorder: store.recorder,
    openReader: async () => {
      const reader = await openReader(directory)
      return { ...reader.recorder, close: () => reader.close() }
    },
    reopen: async () => {
      await open.close()
      open = await openStore(directory)
      return open.recorder
    },
    close: async () => {
      await open.close()
      await rm(directory, { recursive: true })
    },
  }
})

catalogueContract('sqlite', async () => {
  const { store, close } = await fresh()
  return { catalogue: store.catalogue, close }
})

queueContract('sqlite', async () => {
  const { store, close } = await fresh()
  return { queue: store.queue, close }
})

blobsContract('directory', async () => {
  const { directory, store, close } = await fresh()
  return {
    blobs: store.blobs,
    damage: (digest) => writeFile(join(directory, 'blobs', digest.slice(0, 2), digest.slice(2, 4), digest), 'other'),
    close,
  }
})
