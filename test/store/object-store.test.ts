/** Blobs in an object store, or in a directory that machines share: the suite of every driver, on stores that misbehave as real ones do, and what an outage costs. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId, sha256 } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { blobsContract } from '../../src/testing/store/index.ts'
import { DirectoryBlobs, SpooledBlobs, type SpoolOptions } from '../../src/trajectory/blobs/index.ts'
import { DirectoryObjects, S3Objects } from '../../src/trajectory/objects/index.ts'
import {
  backup,
  fsck,
  type ObjectsStore,
  openReader,
  openStore,
  type OwnedStore,
  restore,
} from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type FakeStore, keys, type Misbehaviour, startFakeStore } from '../lab/object-store.ts'

let store: FakeStore
let directory: string
const opened: SpooledBlobs[] = []
beforeEach(async () => {
  store = await startFakeStore()
  directory = tempDir()
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()))
  await store.close()
})

const place = () => ({ endpoint: store.endpoint, bucket: store.bucket, region: store.region, prefix: 'p/' })
const objects = (timeoutMs: number) =>
  new S3Objects({ place: { ...place(), pathStyle: true, folder: 'home' }, keys, timeoutMs, pauseMs: 1 })

async function open(options: Partial<SpoolOptions> = {}, timeoutMs = 15_000): Promise<SpooledBlobs> {
  const spool = new DirectoryBlobs(join(directory, 'blobs'))
  const blobs = new SpooledBlobs(spool, objects(timeoutMs), { spoolBytes: 100, waitMs: 50, pauseMs: 5, ...options })
  opened.push(blobs)
  await blobs.open()
  return blobs
}

async function spooledIn(data: string): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { digest } of new DirectoryBlobs(join(directory, data, 'blobs')).list()) names.push(digest)
  return names
}
const spooled = (): Promise<readonly string[]> => spooledIn('')

const habits: Readonly<Record<string, Misbehaviour>> = {
  'that honours conditions': {},
  'that ignores conditions': { ignoresConditions: true },
  'that does not know conditions': { refusesConditions: true },
  'that is busy, and cuts what it sends and keeps': { slowDown: 2, cut: 1, short: 1, conflicts: 1, truncates: 1 },
}
for (const [name, does] of Object.entries(habits)) {
  blobsContract(`an object store ${name}`, async () => {
    Object.assign(store.does, does)
    return {
      blobs: await open(),
      corrupt: async (digest) => {
        const [key = ''] = [...store.objects.keys()].filter((one) => one.endsWith(digest))
        store.objects.set(key, Buffer.from('other'))
      },
      close: () => Promise.resolve(),
    }
  })
}

blobsContract('a shared directory', async () => {
  const shared = join(directory, 'shared')
  await mkdir(join(shared, 'home'), { recursive: true })
  const spool = new DirectoryBlobs(join(directory, 'blobs'))
  const blobs = new SpooledBlobs(spool, new DirectoryObjects({ directory: shared, folder: 'home', of: 'blobs' }), {
    spoolBytes: 100,
    waitMs: 50,
  })
  await blobs.open()
  return {
    blobs,
    corrupt: (digest) => writeFile(join(shared, 'home', digest.slice(0, 2), digest), 'other'),
    close: () => blobs.close(),
  }
})

it('what is put is in the store when it is told, under its digest, and no longer in the directory', async () => {
  const blobs = await open()
  const digest = await blobs.put(Buffer.from('evidence'))
  expect(store.objects.get(`p/home/${digest.slice(0, 2)}/${digest}`)?.toString()).toBe('evidence')
  expect(await spooled()).toEqual([])
  // Many pages.
  const more = await Promise.all(Array.from({ length: 7 }, (_, n) => blobs.put(Buffer.from(`${n}`))))
  const all: string[] = []
  for await (const blob of blobs.list()) all.push(blob.digest)
  expect(all).toEqual([digest, ...more].toSorted())
})

it('an upload that the store cut is seen and repeated before the blob leaves the directory', async () => {
  store.does.truncates = 1
  const blobs = await open()
  const digest = await blobs.put(Buffer.from('whole'))
  await expect.poll(spooled).toEqual([])
  expect(Buffer.from(await blobs.get(digest)).toString()).toBe('whole')
})

describe('while the store is away', () => {
  it('blobs are kept in the directory, readable, and uploaded when it is back', async () => {
    const seen: (string | null)[] = []
    const blobs = await open({ onChange: (why) => seen.push(why?.code ?? null) })
    store.does.away = true
    const digests = await Promise.all(['a', 'b', 'c'].map((text) => blobs.put(Buffer.from(text))))
    expect(blobs.state()).toMatchObject({ waiting: 3, waitingBytes: 3, full: false })
    expect(blobs.state().away).toContain('object store')
    for (const digest of digests) expect(sha256(await blobs.get(digest))).toBe(digest)
    store.does.away = false
    await expect.poll(() => blobs.state()).toMatchObject({ waiting: 0, away: null })
    expect(await spooled()).toEqual([])
    expect(store.objects.size).toBe(3)
    expect(seen).toEqual(['BLOBS_UNAVAILABLE', null])
  })

  it('no more than the bound waits: beyond it a put ends with the reason, and leaves nothing', async () => {
    const blobs = await open()
    store.does.away = true
    const kept = await blobs.put(Buffer.alloc(80, 1))
    const most = await Promise.allSettled(Array.from({ length: 4 }, () => blobs.put(Buffer.alloc(80, 2))))
    expect(most.map((one) => one.status === 'rejected' && (one.reason as { code: string }).code)).toEqual(
      Array.from({ length: 4 }, () => 'BLOBS_UNAVAILABLE'),
    )
    expect(blobs.state()).toMatchObject({ waiting: 1, full: false })
    expect(await spooled()).toEqual([kept])
  })

  it('one that waits for room goes on when the store is back', async () => {
    const blobs = await open({ waitMs: 60_000 })
    store.does.away = true
    await blobs.put(Buffer.alloc(80, 1))
    const waits = blobs.put(Buffer.alloc(80, 2))
    await expect.poll(() => blobs.state().full).toBe(true)
    store.does.away = false
    expect(await blobs.has(await waits)).toBe(true)
  })

  it('one that takes requests and never answers is away too', async () => {
    store.does.stalls = true
    const blobs = await open({}, 20)
    const digest = await blobs.put(Buffer.from('kept'))
    expect(blobs.state()).toMatchObject({ waiting: 1, away: expect.stringContaining('too long') as unknown })
    expect(sha256(await blobs.get(digest))).toBe(digest)
  })

  it('a start does not wait for it, and uploads what an earlier one left', async () => {
    store.does.away = true
    const first = await open()
    const digest = await first.put(Buffer.from('left'))
    await first.close()
    const second = await open()
    expect(await second.has(digest)).toBe(true)
    store.does.away = false
    await expect.poll(() => store.objects.size).toBe(1)
    await expect.poll(spooled).toEqual([])
  })
})

it('a store that refuses is told at the start, with what it said and without a key', async () => {
  store.does.forbids = true
  const error: unknown = await open().catch((cause: unknown) => cause)
  expect(error).toMatchObject({ code: 'BLOBS_REFUSED', message: expect.stringContaining('AccessDenied') as unknown })
  const none = new S3Objects({ place: { ...place(), pathStyle: true, folder: 'home' }, keys: null })
  await expect(none.probe()).rejects.toMatchObject({
    code: 'BLOBS_REFUSED',
    fix: expect.stringContaining('AWS_') as unknown,
  })
})

describe('a data directory', () => {
  const before = { ...process.env }
  beforeEach(() => {
    process.env['AWS_ACCESS_KEY_ID'] = keys.accessKeyId
    process.env['AWS_SECRET_ACCESS_KEY'] = keys.secretAccessKey
  })
  afterEach(() => {
    process.env = before
  })
  interface Place {
    readonly store: (name: string) => Promise<ObjectsStore>
    /** Blobs that are in it, by that name. */
    readonly holds: (name: string) => Promise<number>
    readonly empty: (name: string) => Promise<void>
    readonly isAway: (name: string, away: boolean) => Promise<void>
  }
  const at = (name: string): string => join(directory, name)
  const places: Readonly<Record<string, Place>> = {
    'an object store': {
      store: async (name) => ({ s3: { ...place(), prefix: `${name}/`, pathStyle: true } }),
      holds: async (name) => [...store.objects.keys()].filter((key) => key.startsWith(`${name}/`)).length,
      empty: async () => store.objects.clear(),
      isAway: async (_, away) => void (store.does.away = away),
    },
    'a shared directory': {
      store: async (name) => {
        await mkdir(at(name), { recursive: true })
        return { directory: at(name) }
      },
      holds: async (name) =>
        (await readdir(at(name), { recursive: true })).filter((path) => /\/[0-9a-f]{64}$/.test(path)).length,
      empty: async (name) => {
        for (const folder of await readdir(at(name))) {
          await rm(join(at(name), folder), { recursive: true })
          await mkdir(join(at(name), folder))
        }
      },
      isAway: async (name, away) =>
        away ? rename(at(name), at(`${name}-unmounted`)) : rename(at(`${name}-unmounted`), at(name)),
    },
  }

  describe.each(Object.entries(places))('in %s', (_, one) => {
    const openData = async (name: string, where: string): Promise<OwnedStore> =>
      openStore(at(name), { blobs: { store: await one.store(where), spoolMb: 1, waitMs: 50 } })

    it('has its blobs there, is read by everybody, copied whole, and restored to another store', async () => {
      const data = await openData('data', 'first')
      const [rollout = ''] = await recordRollouts(data, [{ reward: 1 }])
      const content = Buffer.from('artifact')
      store.does.listsLate = true
      const sha = await data.blobs.put(content)
      const artifacts = [{ path: '/a', sha256: sha, sizeBytes: content.length }]
      const [verdict] = (await data.catalogue.rollout(rollout)).verdicts
      if (verdict === undefined) throw new Error('no verdict')
      await data.catalogue.appendVerdict({ ...verdict, id: newId(), artifacts, supersedes: null })
      await data.close()
      expect(await spooledIn('data')).toEqual([])
      expect((await fsck(at('data'))).problems).toEqual([])
      {
        await using reader = await openReader(at('data'))
        expect(Buffer.from(await reader.blobs.get(sha)).toString()).toBe('artifact')
      }
      expect(await readFile(join(at('data'), 'blobs.json'), 'utf8')).not.toContain(keys.secretAccessKey)

      await backup(at('data'), at('copy'))
      await one.empty('first')
      expect((await fsck(at('data'))).problems).toHaveLength(1)
      expect((await fsck(at('copy'))).problems).toEqual([])
      await restore(at('copy'), at('new'))
      const again = await openData('new', 'other')
      await expect.poll(() => one.holds('other')).toBe(1)
      await again.close()
      expect((await fsck(at('new'))).problems).toEqual([])
      await expect(openData('new', 'third')).rejects.toMatchObject({ code: 'BLOBS_OTHER' })
      await (await openStore(at('new'))).close()
    })

    it('keeps what comes while it is away, also over a start, and brings it there when it is back', async () => {
      await (await openData('data', 'first')).close()
      await one.isAway('first', true)
      const store = await openStore(at('data'))
      const sha = await store.blobs.put(Buffer.from('kept'))
      expect(store.blobsState?.()).toMatchObject({ waiting: 1, full: false, away: expect.any(String) as unknown })
      expect(Buffer.from(await store.blobs.get(sha)).toString()).toBe('kept')
      await store.close()
      expect(await spooledIn('data')).toEqual([sha])
      await one.isAway('first', false)
      const later = await openStore(at('data'))
      await expect.poll(() => one.holds('first')).toBe(1)
      await expect.poll(() => spooledIn('data')).toEqual([])
      await later.close()
    })
  })

  it('that lost the file which names its shared directory finds its blobs again', async () => {
    await mkdir(at('shared'))
    const blobs = { store: { directory: at('shared') }, spoolMb: 1, waitMs: 50 }
    const first = await openStore(at('data'), { blobs })
    const sha = await first.blobs.put(Buffer.from('found'))
    await first.close()
    await rm(join(at('data'), 'blobs.json'))
    const second = await openStore(at('data'), { blobs })
    expect(Buffer.from(await second.blobs.get(sha)).toString()).toBe('found')
    await second.close()
  })

  it('goes by the file of a version that knew object stores only', async () => {
    const bucket = { ...place(), pathStyle: true }
    await (await openStore(at('data'), { blobs: { store: { s3: bucket }, spoolMb: 1, waitMs: 50 } })).close()
    const { folder } = JSON.parse(await readFile(join(at('data'), 'blobs.json'), 'utf8')) as { folder: string }
    await writeFile(join(at('data'), 'blobs.json'), JSON.stringify({ ...bucket, folder }))
    const data = await openStore(at('data'))
    const sha = await data.blobs.put(Buffer.from('x'))
    expect([...store.objects.keys()]).toEqual([`p/${folder}/${sha.slice(0, 2)}/${sha}`])
    await data.close()
  })

  it('is refused where its shared directory is not there', async () => {
    await expect(
      openStore(at('data'), { blobs: { store: { directory: at('nowhere') }, spoolMb: 1, waitMs: 50 } }),
    ).rejects.toMatchObject({ code: 'BLOBS_REFUSED', message: expect.stringContaining('nowhere') as unknown })
  })
})
