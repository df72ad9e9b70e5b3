/** A data directory with an archive in each place that there is, for the tests of it. */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { commitFact, ids, intentFact, promptFact, sessionFact } from '../../src/testing/store/index.ts'
import {
  type ObjectsStore,
  openStore,
  type OwnedStore,
  runExport,
  type StoreReader,
} from '../../src/trajectory/index.ts'
import { type FakeStore, keys, startFakeStore } from './object-store.ts'

const before = { ...process.env }
export let server: FakeStore
let directory: string
beforeEach(async () => {
  server = await startFakeStore()
  directory = await mkdtemp(join(tmpdir(), 'paddock-archive-'))
  await mkdir(join(directory, 'shared'))
  process.env['AWS_ACCESS_KEY_ID'] = keys.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = keys.secretAccessKey
})
afterEach(async () => {
  process.env = { ...before }
  await server.close()
  await rm(directory, { recursive: true })
})

/** A path of this test alone. */
export const at = (name: string): string => join(directory, name)

/** A place, and what a test does to it behind the archive's back. */
export interface Place {
  readonly store: () => ObjectsStore
  readonly keys: () => Promise<readonly string[]>
  /** An object as it is, or what it is from now on; null: it is gone. */
  readonly change: (key: string, to: Uint8Array | null) => Promise<void>
  readonly age: (key: string, ms: number) => Promise<void>
  /** Whether it can be had. */
  readonly isAway: (away: boolean) => Promise<void>
}

export const places: Readonly<Record<string, Place>> = {
  'an object store': {
    store: () => ({
      s3: { endpoint: server.endpoint, bucket: server.bucket, region: server.region, prefix: 'p/', pathStyle: true },
    }),
    keys: async () => [...server.objects.keys()],
    change: async (key, to) =>
      void (to === null ? server.objects.delete(key) : server.objects.set(key, Buffer.from(to))),
    age: async (key, ms) => void server.written.set(key, Date.now() - ms),
    isAway: async (away) => void (server.does.away = away),
  },
  'a shared directory': {
    store: () => ({ directory: at('shared') }),
    keys: async () => (await readdir(at('shared'), { recursive: true })).filter((name) => /\/[0-9a-f]{64}$/.test(name)),
    change: async (key, to) => (to === null ? rm(join(at('shared'), key)) : writeFile(join(at('shared'), key), to)),
    age: async (key, ms) => {
      const then = new Date(Date.now() - ms)
      await utimes(join(at('shared'), key), then, then)
    },
    isAway: async (away) => (away ? rename(at('shared'), at('unmounted')) : rename(at('unmounted'), at('shared'))),
  },
}

const owners: OwnedStore[] = []
afterEach(async () => {
  for (const owner of owners.splice(0)) await owner.close()
})
/** Opens a data directory, which is closed behind the test. */
export async function open(name: string, store: ObjectsStore | null): Promise<OwnedStore> {
  const owner = await openStore(at(name), { archive: { store, pollMs: null } })
  owners.push(owner)
  return owner
}

/** Rollouts with finished sessions, one with a branch, and a session of none. */
export async function fill(store: OwnedStore): Promise<readonly string[]> {
  const rollouts = await recordRollouts(store, [{ reward: 1, turns: 3 }, { reward: 0, branch: true }, { reward: 1 }])
  for (const { id } of await store.recorder.sessions()) await store.recorder.closeSession(id, 9)
  const loose = sessionFact()
  await store.recorder.openSession(loose)
  const intent = intentFact(loose.id, 0, '{}')
  await store.recorder.beginCall(intent)
  await store.recorder.commitCall(commitFact(intent, [promptFact(intent, ids(9))]))
  await store.recorder.closeSession(loose.id, 9)
  return rollouts
}
/** Sessions of {@link fill}. */
export const finished = 4

/** All that is finished, without a fault. */
export async function archive(store: OwnedStore): Promise<void> {
  await store.archiver?.round()
  expect(store.archiver?.state()).toEqual({ waiting: 0, damaged: 0, failures: 0, away: null })
}

/** All that a store says of its sessions, and the bytes of an export. */
export async function said(
  reader: Pick<StoreReader, 'recorder' | 'catalogue' | 'trainer' | 'blobs'>,
): Promise<unknown> {
  const sessions = await Promise.all(
    (await reader.recorder.sessions()).map(async ({ id }) => reader.recorder.session(id)),
  )
  const out = at(`out-${newId()}`)
  await runExport({ reader: reader as StoreReader, exporter: 'jsonl', out, paddockVersion: '1.2.3' })
  const files = (await readdir(out)).filter((name) => !name.includes('manifest')).toSorted()
  return { sessions, files: await Promise.all(files.map((name) => readFile(join(out, name), 'latin1'))) }
}

/** Records of calls that are in a log. */
export function callsIn(name: string): number {
  const db = new Database(join(at(name), 'log.sqlite'), { readonly: true })
  try {
    return Number(db.prepare('SELECT count(*) FROM calls').pluck().get())
  } finally {
    db.close()
  }
}
