/** Blobs on an S3 server of somebody else's: the suite of every driver, and real commands over an outage of it. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { blobsContract } from '../../src/testing/store/index.ts'
import { DirectoryBlobs, SpooledBlobs } from '../../src/trajectory/blobs/index.ts'
import { S3Objects } from '../../src/trajectory/objects/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { paddock, serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type ObjectStoreServer, startObjectStore } from './object-store-server.ts'

let server: ObjectStoreServer
let directory: string
const before = { ...process.env }
beforeAll(async () => {
  server = await startObjectStore()
  directory = tempDir()
  process.env['AWS_ACCESS_KEY_ID'] = server.keys.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = server.keys.secretAccessKey
})
afterAll(async () => {
  process.env = before
  await server.stop()
})

const place = () => ({
  endpoint: server.endpoint,
  bucket: server.bucket,
  region: server.region,
  pathStyle: true,
  prefix: 'p/',
})

blobsContract('an S3 server', async () => {
  const folder = newId()
  const objects = new S3Objects({ place: { ...place(), folder }, keys: { ...server.keys, sessionToken: null } })
  const spool = new DirectoryBlobs(join(directory, folder))
  const blobs = new SpooledBlobs(spool, objects, { spoolBytes: 1e6, waitMs: 1000 })
  await blobs.open()
  return {
    blobs,
    corrupt: async (digest) => {
      const url = `${server.endpoint}/${server.bucket}/p/${folder}/${digest.slice(0, 2)}/${digest}`
      const answer = await server.client.fetch(url, { method: 'PUT', body: 'other' })
      expect(answer.status).toBe(200)
    },
    close: () => blobs.close(),
  }
})

it('a service records on over an outage of its store, says so, and has all of it there afterwards', async () => {
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(config, `export default { blobs: { s3: ${JSON.stringify(place())} } }\n`)
  const data = join(directory, 'data')
  const log = join(directory, 'log.jsonl')
  const env = { PADDOCK_CONFIG: config, PADDOCK_LOG: 'info', PADDOCK_LOG_FILE: log }
  const first = await openStore(data, { blobs: { store: { s3: place() }, spoolMb: 10, waitMs: 1000 } })
  await recordRollouts(first, [{ reward: 1 }])
  const early = await first.blobs.put(Buffer.from('early'))
  await server.kill()
  const late = await first.blobs.put(Buffer.from('late'))
  expect(first.blobsState?.()).toMatchObject({ waiting: 1, full: false })
  await first.close()

  const doctor = await paddock(['doctor', '--data', data, '--json'])
  expect(doctor.out).toContain('object store')
  const checked = await paddock(['fsck', '--data', data])
  expect([checked.code, checked.out]).toEqual([1, expect.stringContaining('BLOBS_UNAVAILABLE')])
  const serving = await serve(data, [], env)
  const ready = async (): Promise<unknown> => (await fetch(`${serving.ready.control}/readyz`)).json()
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const metrics = async (): Promise<string> =>
    (await fetch(`${serving.ready.control}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  expect(await ready()).toMatchObject({ status: 'ready', blobs: 'waiting' })
  expect(await metrics()).toMatch(/^paddock_blobs_waiting 1$/m)
  await server.start()
  await expect.poll(ready).toMatchObject({ status: 'ready', blobs: 'stored' })
  expect(await metrics()).toMatch(/^paddock_blobs_waiting 0$/m)
  await serving.stop()

  const sound = await paddock(['fsck', '--data', data])
  expect([sound.code, sound.out]).toEqual([0, expect.stringContaining('blobs 2')])
  const copied = await paddock(['backup', data, '--into', join(directory, 'copy')])
  expect([copied.code, copied.out]).toEqual([0, expect.stringContaining('2 blobs')])
  for (const digest of [early, late]) {
    expect(await stat(join(directory, 'copy/blobs', digest.slice(0, 2), digest.slice(2, 4), digest))).toBeDefined()
  }
  const lines = await readFile(log, 'utf8')
  expect(lines).toContain('blobs wait for their store')
  expect(lines).toContain('the store of the blobs answers again')
  for (const name of await readdir(directory, { recursive: true })) {
    const path = join(directory, name)
    if ((await stat(path)).isFile())
      expect(await readFile(path, 'latin1'), name).not.toContain(server.keys.secretAccessKey)
  }
})
