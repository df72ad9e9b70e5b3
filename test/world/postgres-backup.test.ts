/** Backup and restore where the catalogue is in PostgreSQL: copies of one moment while two data directories record into it. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId, sha256 } from '../../src/core/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { ownTables, sharedTables } from '../../src/trajectory/backup/shared-tables.ts'
import { backup, fsck, openReader, openStore, type OwnedStore, restore } from '../../src/trajectory/index.ts'
import { type Ended, paddock } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

let server: PostgresServer
let directory: string
beforeAll(async () => {
  server = await startPostgres()
  directory = tempDir()
})
afterAll(async () => {
  await server.stop()
})

async function rowsOf<Row extends object>(url: string, text: string): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

/** Rollouts, and something of each kind that hangs on a group, a trainer and the queue. */
async function fill(store: OwnedStore): Promise<{ readonly runId: string; readonly rollouts: readonly string[] }> {
  const artifact = await store.blobs.put(Buffer.from(`evidence ${newId()}`))
  const rollouts = await recordRollouts(store, [{ reward: 1, turns: 3, taint: 'a\0b' }, { reward: 0 }])
  const { runId, groupId } = await store.catalogue.rollout(rollouts[0] ?? '')
  await store.catalogue.label(rollouts[0] ?? '', 'note', 'é\0')
  await store.catalogue.putTokenTexts('bpe', new Map([[7, Buffer.from([0, 255])]]))
  await store.catalogue.openRound({
    groupId,
    runId,
    round: 0,
    spec: {
      n: 2,
      over: 0,
      minUsable: 1,
      stopWhen: { kind: 'usable', count: 1 },
      carry: false,
      topUp: 0,
      deadlineMs: null,
      labels: {},
      horizon: null,
      fork: null,
      onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify' },
    },
  })
  const slots = await store.catalogue.openSlots(groupId, [{ jobId: newId(), key: 'k' }])
  const topic = `run:${runId}`
  await store.queue.enqueue(
    topic,
    [...slots.map(({ jobId }) => jobId), newId()].map((id) => ({
      id,
      payload: { artifact },
      runId,
      groupId,
      priority: 0,
      needs: { labels: ['gpu'] },
    })),
  )
  const session = newId()
  await store.queue.join({ id: session, name: 'node', labels: ['gpu'] }, 60_000)
  const [lease] = await store.queue.claim(topic, session, { requestId: newId(), limit: 1, capacity: {} })
  if (lease === undefined) throw new Error('nothing to claim')
  await store.queue.handIn(lease, { digest: sha256('made'), made: null, next: 'done' })
  const none = { members: 0, sampledTokens: 0 }
  const about = { usable: 0, censored: none, carried: none, neverBegan: 0 }
  await store.catalogue.settleRound({
    groupId,
    runId,
    round: 0,
    state: 'settled',
    stoppedBy: null,
    members: [],
    ...about,
  })
  const { incarnation } = await store.trainer.attach(runId, { resumeStep: null, consumer: 'c' })
  await store.trainer.checkpoint(runId, { incarnation, step: 1 })
  await store.trainer.announce(runId, { incarnation, ordinal: 1, label: 'v1', step: null })
  return { runId, rollouts }
}

/** Columns that are the same wherever a row is. */
const facts = `SELECT (SELECT count(*) FROM paddock.jobs) AS jobs, (SELECT count(*) FROM paddock.hand_ins) AS hand_ins,
  (SELECT count(*) FROM paddock.handouts WHERE state = 'ready') AS handouts, (SELECT count(*) FROM paddock.run_events) AS events,
  (SELECT count(*) FROM paddock.trainer_versions) AS versions, (SELECT count(*) FROM paddock.token_texts) AS texts,
  (SELECT string_agg(extract(epoch FROM expires_at)::text || labels::text, ' ' ORDER BY id) FROM paddock.node_sessions) AS sessions`

it('every table of the catalogue is copied, or is of the database itself', async () => {
  const url = await server.database()
  await (await openStore(join(directory, 'tables'), { catalogue: url })).close()
  const there = await rowsOf<{ name: string }>(
    url,
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'paddock'`,
  )
  expect(there.map(({ name }) => name).toSorted()).toEqual(
    [...ownTables, ...sharedTables.map(({ name }) => name)].toSorted(),
  )
})

it('two directories on one database, copied while they record and restored into another: clean, whole, the same rows', async () => {
  const env = { PADDOCK_CATALOGUE: await server.database() }
  const names = ['a', 'b'] as const
  const at = (what: string, name: string): string => join(directory, `${what}-${name}`)
  const command = async (...args: readonly string[]): Promise<Ended> => {
    const ended = await paddock(args, env)
    expect(ended, args.join(' ')).toMatchObject({ code: 0 })
    return ended
  }
  const stores = await Promise.all(
    names.map((name) => openStore(at('data', name), { catalogue: env.PADDOCK_CATALOGUE })),
  )
  const filled = await Promise.all(stores.map(fill))
  const before = await rowsOf(env.PADDOCK_CATALOGUE, facts)
  const going = new AbortController()
  const writers = stores.map(async (store) => {
    while (!going.signal.aborted) await recordRollouts(store, [{ reward: 1, turns: 4 }, { reward: 0 }])
  })
  try {
    await command('backup', at('data', 'a'), '--into', at('copy', 'a'))
    await backup(at('data', 'b'), at('copy', 'b'), { catalogue: env.PADDOCK_CATALOGUE })
  } finally {
    going.abort()
    await Promise.all(writers)
    await Promise.all(stores.map((store) => store.close()))
  }

  // A copy is a store as it is, and has all that an ended rollout said.
  for (const [at_, name] of names.entries()) {
    await using copy = await openStore(at('copy', name))
    expect(copy.recovered.damaged).toBe(0)
    const rollouts = await copy.catalogue.rollouts({ limit: 10_000 })
    expect(rollouts.map(({ id }) => id)).toEqual(expect.arrayContaining([...(filled[at_]?.rollouts ?? [])]))
    for (const { id } of rollouts.filter(({ end }) => end !== null)) {
      const [session] = await copy.recorder.sessions({ rolloutId: id })
      expect((await copy.recorder.session(session?.id ?? '')).closedAt).not.toBeNull()
    }
  }
  for (const name of names) expect((await fsck(at('copy', name))).problems).toEqual([])

  const fresh = { PADDOCK_CATALOGUE: await server.database() }
  const restored = await paddock(['restore', at('copy', 'a'), '--into', at('new', 'a')], fresh)
  expect([restored.code, restored.err]).toEqual([0, ''])
  await restore(at('copy', 'b'), at('new', 'b'), { catalogue: fresh.PADDOCK_CATALOGUE })
  expect(await rowsOf(fresh.PADDOCK_CATALOGUE, facts)).toEqual(before)
  for (const [index, name] of names.entries()) {
    expect((await fsck(at('new', name), { catalogue: fresh.PADDOCK_CATALOGUE })).problems).toEqual([])
    await using was = await openReader(at('data', name), { catalogue: env.PADDOCK_CATALOGUE })
    await using is = await openReader(at('new', name), { catalogue: fresh.PADDOCK_CATALOGUE })
    for (const id of filled[index]?.rollouts ?? []) {
      expect(await is.catalogue.rollout(id)).toEqual(await was.catalogue.rollout(id))
    }
  }
  const rows = async (data: string, with_: typeof env): Promise<Readonly<Record<string, string>>> => {
    const out = `${data}-out`
    const args = ['export', '--run', filled[0]?.runId ?? '', '--format', 'jsonl', '--out', out, '--data', data]
    expect(await paddock(args, with_)).toMatchObject({ code: 0 })
    const files = await readdir(out)
    return Object.fromEntries(
      await Promise.all(files.map(async (file) => [file, await readFile(join(out, file), 'utf8')] as const)),
    )
  }
  const [from, to] = [await rows(at('data', 'a'), env), await rows(at('new', 'a'), fresh)]
  const ofRows = (files: typeof from) => Object.entries(files).filter(([name]) => !name.includes('manifest'))
  expect(ofRows(to).length).toBeGreaterThan(0)
  expect(ofRows(to)).toEqual(ofRows(from))

  // Numbers go on behind what was restored, and nothing is restored twice.
  await using again = await openStore(at('new', 'a'), { catalogue: fresh.PADDOCK_CATALOGUE })
  await fill(again)
  await expect(restore(at('copy', 'a'), at('more', 'a'), { catalogue: fresh.PADDOCK_CATALOGUE })).rejects.toMatchObject(
    {
      code: 'STORE_CONFLICT',
    },
  )
  expect(await readdir(directory)).not.toContain('more-a')
})

it('a rollout whose end is being written is waited for', async () => {
  const url = await server.database()
  const data = join(directory, 'ending')
  const store = await openStore(data, { catalogue: url })
  const [id = ''] = await recordRollouts(store, [{ reward: null, end: null }])
  await store.close()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN')
  await client.query('LOCK TABLE paddock.rollout_ends IN ROW EXCLUSIVE MODE')
  let done = false
  const copying = backup(data, join(directory, 'ended'), { catalogue: url }).then(() => (done = true))
  const waiting = `SELECT 1 FROM pg_locks WHERE relation = 'paddock.rollout_ends'::regclass AND NOT granted`
  while ((await client.query(waiting)).rowCount === 0) expect(done).toBe(false)
  await client.query('COMMIT')
  await client.end()
  await copying
  await using copy = await openReader(join(directory, 'ended'))
  expect(await copy.catalogue.rollout(id)).toMatchObject({ end: null })
})

it('a directory with a catalogue of its own moves to PostgreSQL, and goes on there', async () => {
  const url = await server.database()
  const data = join(directory, 'own')
  const store = await openStore(data)
  const { rollouts } = await fill(store)
  await store.close()
  const into = join(directory, 'moved')
  const moved = await paddock(['restore', data, '--into', into, '--catalogue', url])
  expect([moved.code, moved.err]).toEqual([0, ''])
  await using there = await openStore(into, { catalogue: url })
  await using was = await openReader(data)
  for (const id of rollouts) expect(await there.catalogue.rollout(id)).toEqual(await was.catalogue.rollout(id))
  await fill(there)
  expect((await fsck(into, { catalogue: url })).problems).toEqual([])
})
