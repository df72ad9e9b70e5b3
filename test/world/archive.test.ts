/** Finished sessions on an S3 server of somebody else's, with a catalogue in PostgreSQL: read by another data directory, over outages, copied. */
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { sessionFact } from '../../src/testing/store/index.ts'
import { backup, fsck, openReader, openStore, type OwnedStore, restore } from '../../src/trajectory/index.ts'
import { paddock, serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type ObjectStoreServer, startObjectStore } from './object-store-server.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

let server: ObjectStoreServer
let postgres: PostgresServer
let directory: string
const before = { ...process.env }
beforeAll(async () => {
  ;[server, postgres] = await Promise.all([startObjectStore(), startPostgres()])
  process.env['AWS_ACCESS_KEY_ID'] = server.keys.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = server.keys.secretAccessKey
})
afterAll(async () => {
  process.env = before
  await Promise.all([server.stop(), postgres.stop()])
})
beforeEach(async () => {
  directory = tempDir()
})
const owners: OwnedStore[] = []
afterEach(async () => {
  for (const owner of owners.splice(0)) await owner.close()
})

const at = (name: string): string => join(directory, name)
const s3 = () => ({
  endpoint: server.endpoint,
  bucket: server.bucket,
  region: server.region,
  pathStyle: true,
  prefix: 'sessions/',
})

async function open(name: string, catalogue: string | null, onStep?: () => void): Promise<OwnedStore> {
  const step = onStep === undefined ? {} : { onStep: (done: string) => void (done === 'dropped' && onStep()) }
  const owner = await openStore(at(name), { catalogue, archive: { store: { s3: s3() }, pollMs: null, ...step } })
  owners.push(owner)
  return owner
}

async function exported(name: string, catalogue: string, out: string): Promise<readonly string[]> {
  const made = await paddock([
    'export',
    '--data',
    at(name),
    '--catalogue',
    catalogue,
    '--format',
    'jsonl',
    '--out',
    at(out),
  ])
  expect([made.code, made.err]).toEqual([0, expect.anything()])
  const files = (await readdir(at(out))).filter((file) => !file.includes('manifest')).toSorted()
  return Promise.all(files.map((file) => readFile(join(at(out), file), 'latin1')))
}

function callsIn(name: string): number {
  const db = new Database(join(at(name), 'log.sqlite'), { readonly: true })
  try {
    return Number(db.prepare('SELECT count(*) FROM calls').pluck().get())
  } finally {
    db.close()
  }
}

it('another data directory on the same catalogue and bucket reads what was archived, without the disk of the first', async () => {
  const url = await postgres.database()
  await (await open('other', url)).close()
  const first = await open('first', url)
  const [rollout = '', second = ''] = await recordRollouts(first, [
    { reward: 1, turns: 3 },
    { reward: 0, branch: true },
  ])
  // A second session of the first rollout.
  const judge = sessionFact({ rolloutId: rollout, role: 'judge' })
  await first.recorder.openSession(judge)
  await first.recorder.closeSession(judge.id, 9)
  await first.recorder.appendEvent({
    id: newId(),
    at: 7,
    rolloutId: rollout,
    sessionId: null,
    kind: 'handed_in',
    digest: 'd',
    sizeBytes: 1,
    by: 'test',
  })
  await first.recorder.flush()
  const was = await exported('first', url, 'was')
  const events = await first.recorder.events({ rolloutId: rollout })
  const sessions = await first.recorder.sessions({ rolloutId: rollout })
  const logs = await Promise.all(sessions.map(async ({ id }) => first.recorder.session(id)))
  const elsewhere = async (id: string): Promise<unknown> => {
    await using reader = await openReader(at('other'), { catalogue: url })
    return await reader.recorder.sessions({ rolloutId: id })
  }
  await expect(elsewhere(rollout)).rejects.toMatchObject({ code: 'RECORDED_ELSEWHERE' })
  await first.close()

  // Half of a rollout is none.
  const half = await open('first', url, () => {
    throw new Error('no further')
  })
  await half.archiver?.round()
  await half.close()
  await expect(elsewhere(rollout)).rejects.toMatchObject({ code: 'RECORDED_ELSEWHERE' })

  const whole = await open('first', url)
  await whole.archiver?.round()
  expect(whole.archiver?.state()).toMatchObject({ waiting: 0, failures: 0 })
  await whole.close()
  await rename(at('first'), at('lost'))
  expect(await exported('other', url, 'there')).toEqual(was)
  const shown = await paddock(['show', second, '--data', at('other'), '--catalogue', url])
  expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('answer 1')])
  const other = await open('other', url)
  expect(await other.recorder.sessions({ rolloutId: rollout })).toEqual(sessions)
  expect(await Promise.all(sessions.map(async ({ id }) => other.recorder.session(id)))).toEqual(logs)
  expect(await other.recorder.events({ rolloutId: rollout })).toEqual(events)
  expect((await fsck(at('other'), { catalogue: url })).problems).toEqual([])
})

it('a backup beside PostgreSQL has the objects, and a restore brings them into a folder and a database of its own', async () => {
  const url = await postgres.database()
  const store = await open('data', url)
  await recordRollouts(store, [{ reward: 1 }, { reward: 0 }])
  const was = await exported('data', url, 'was')
  await store.archiver?.round()
  expect(callsIn('data')).toBe(0)
  await backup(at('data'), at('copy'), { catalogue: url })
  await store.close()
  const next = await postgres.database()
  await restore(at('copy'), at('new'), { catalogue: next })
  expect((await fsck(at('new'), { catalogue: next })).problems).toEqual([])
  const restored = await open('new', next)
  await restored.archiver?.round()
  expect(restored.archiver?.state()).toMatchObject({ waiting: 0, failures: 0 })
  expect(await exported('new', next, 'again')).toEqual(was)
  const [session] = await restored.recorder.sessions()
  const [record] = await restored.catalogue.archived({ sessionId: session?.id ?? '' })
  const { folder } = JSON.parse(await readFile(join(at('new'), 'archive.json'), 'utf8')) as { folder: string }
  expect(record?.folder).toBe(folder)
})

it('a service archives by itself over an outage of the store, says so, and nothing waits for it', async () => {
  const config = at('paddock.config.mjs')
  await writeFile(config, `export default { archive: { s3: ${JSON.stringify(s3())} } }\n`)
  const first = await openStore(at('data'))
  const [rollout = ''] = await recordRollouts(first, [{ reward: 1 }, { reward: 1 }])
  await first.close()
  const log = at('log.jsonl')
  const env = { PADDOCK_CONFIG: config, PADDOCK_LOG: 'info', PADDOCK_LOG_FILE: log }
  await server.kill()
  const serving = await serve(at('data'), [], env)
  const token = (await readFile(join(at('data'), 'control-token'), 'utf8')).trim()
  const metrics = async (): Promise<string> =>
    (await fetch(`${serving.ready.control}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  await expect.poll(metrics).toMatch(/^paddock_archive_waiting 2$/m)
  expect((await fetch(`${serving.ready.control}/readyz`)).status).toBe(200)
  const doctor = await paddock(['doctor', '--data', at('data'), '--json'])
  expect(doctor.out).toContain('the object store of the archive')
  await server.start()
  await expect.poll(metrics).toMatch(/^paddock_archive_waiting 0$/m)
  const again = await paddock(['doctor', '--data', at('data'), '--json'])
  expect(again.out).toContain(`s3: ${server.bucket}/sessions/ answers`)
  const shown = await paddock(['show', rollout, '--data', at('data')])
  expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('answer 1')])
  await serving.stop()
  expect(callsIn('data')).toBe(0)
  expect((await paddock(['fsck', '--data', at('data')])).code).toBe(0)
  const lines = await readFile(log, 'utf8')
  expect(lines).toContain('finished sessions wait for their archive')
  expect(lines).toContain('the archive of finished sessions answers again')
})
