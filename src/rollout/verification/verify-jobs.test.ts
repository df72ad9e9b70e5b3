/** Verifications as jobs over a real queue: whose they are, and what becomes of them when whoever has one is lost, fails or stops. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { type Id, makeTask, newId, sha256 } from '../../core/index.ts'
import { scored, unscored } from '../../reward/index.ts'
import { openStore, type OwnedStore } from '../../trajectory/index.ts'
import { type AskedVerification, digestOf, type NodeVerification, type Verified, VerifyJobs } from './index.ts'

const facts = { verifier: { id: 'gate/one', version: '1', sha256: sha256('v') }, trust: 'host' } as const
const broken = unscored('infra_error', 'no Docker', facts)
const work = Buffer.from('what an agent left')
const named = { path: '/a', sha256: sha256(work), sizeBytes: work.length }

let directory: string
let store: OwnedStore
let jobs: VerifyJobs
let stop: AbortController
beforeEach(async () => {
  directory = tempDir()
  await mkdir(join(directory, 'tasks'))
  await writeFile(join(directory, 'tasks/one.json'), '{}')
  store = await openStore(join(directory, 'data'))
  stop = new AbortController()
  jobs = new VerifyJobs({ store, here: null, places: 1, onFailure: (error) => expect(error).toBeNull() })
})
afterEach(async () => {
  await jobs.close()
  await store.close()
})

function asked(environment = 'gate'): AskedVerification {
  const source = join(directory, 'tasks/one.json')
  const task = makeTask({ name: 'one', environment, instruction: '', split: 'train', data: {}, source })
  const order = {
    task,
    environment: { name: environment, verifierVersion: '1' },
    work: { artifacts: [named], shared: false, cut: false },
    toolCalls: null,
    budgetMs: 1000,
    labels: {},
  }
  const blobs = { get: async () => Promise.resolve(work) }
  return { order, environment: {} as never, blobs, root: join(directory, 'tasks') }
}
/** What it comes to; that it is refused is looked at later. */
function verify(one = asked()): Promise<Verified> {
  const came = jobs.verify(one, stop.signal)
  came.catch(() => undefined)
  return came
}
async function session(): Promise<Id> {
  const id = newId()
  await store.queue.join({ id, name: 'node', labels: [] }, 600_000)
  return id
}
/** The next that a session gets: it may not have been asked for yet. */
async function claimed(by: Id, without: readonly string[] = []): Promise<NodeVerification> {
  let found: readonly NodeVerification[] = []
  await expect
    .poll(async () => (found = await jobs.claim(by, { requestId: newId(), limit: 4, without })).length)
    .toBe(1)
  const [one] = found
  if (one === undefined) throw new Error('nothing to claim')
  return one
}
const handIn = ({ lease }: NodeVerification, came: Verified) => jobs.handIn(lease, { digest: digestOf(came), came })

it('go to one session, with what they need and for as long as it holds them, and are handed in once', async () => {
  const came = verify()
  const by = await session()
  const one = await claimed(by)
  expect(one).toMatchObject({ order: { task: { name: 'one' } }, at: 'one.json' })
  expect(await jobs.claim(await session(), { requestId: newId(), limit: 4, without: [] })).toEqual([])
  expect(await jobs.files(one.lease)).toMatchObject({ files: [{ path: 'one.json', sha256: sha256('{}') }] })
  expect(await jobs.file(one.lease, sha256('{}'))).toBe(join(directory, 'tasks/one.json'))
  expect(Buffer.from(await jobs.artifact(one.lease, named.sha256)).toString()).toBe(work.toString())
  await expect(jobs.artifact(one.lease, sha256('other'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const others = [
    { ...one.lease, session: await session() },
    { ...one.lease, token: 2 },
    { ...one.lease, jobId: newId() },
  ]
  for (const lease of others) {
    await expect(jobs.files(lease)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(jobs.artifact(lease, named.sha256)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  expect(await handIn(one, scored(1, facts))).toMatchObject({ accepted: true, repeated: false })
  expect(await handIn(one, scored(1, facts))).toMatchObject({ accepted: true, repeated: true })
  expect(await handIn(one, scored(0, facts))).toMatchObject({ accepted: false, why: 'differs' })
  expect(await came).toMatchObject({ reward: 1 })
  await expect(jobs.artifact(one.lease, named.sha256)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

it('of a session that is lost go to the next, and what the first makes of them is refused then', async () => {
  const came = verify()
  const lost = await session()
  const first = await claimed(lost)
  await store.queue.beat(lost, 0)
  await store.queue.sweep()
  const second = await claimed(await session())
  expect(second.lease).toMatchObject({ jobId: first.lease.jobId, token: 2 })
  expect(await handIn(first, scored(0, facts))).toMatchObject({ accepted: false, why: 'not_yours' })
  expect(await handIn(second, scored(1, facts))).toMatchObject({ accepted: true })
  expect(await came).toMatchObject({ reward: 1 })
})

it('that a fault of ours ended are tried again, three times in all, and never scored', async () => {
  const came = verify()
  const by = await session()
  for (const state of ['ready', 'ready', 'done']) {
    expect(await handIn(await claimed(by), broken)).toMatchObject({ accepted: true, state })
  }
  expect(await came).toEqual(broken)
  const well = verify()
  expect(await handIn(await claimed(by), broken)).toMatchObject({ state: 'ready' })
  expect(await handIn(await claimed(by), scored(0.5, facts))).toMatchObject({ state: 'done' })
  expect(await well).toMatchObject({ reward: 0.5 })
})

it('of environments that a node cannot verify are left to others, and no other job is handed in as one', async () => {
  const [gate, sql] = [verify(), verify(asked('sql'))]
  const by = await session()
  const one = await claimed(by, ['sql'])
  expect(one.order.environment.name).toBe('gate')
  const other = await claimed(by, ['gate'])
  expect(other.order.environment.name).toBe('sql')
  for (const done of [one, other]) await handIn(done, scored(1, facts))
  expect(await Promise.all([gate, sql])).toMatchObject([{ reward: 1 }, { reward: 1 }])
  const rollout = newId()
  await store.queue.enqueue('run/r', [{ id: rollout, payload: { slot: 0 } }])
  const [lease] = await store.queue.claim('run/r', by, { requestId: newId(), limit: 1, capacity: {} })
  if (lease === undefined) throw new Error('nothing to claim')
  const came = scored(1, facts)
  expect(await jobs.handIn(lease, { digest: digestOf(came), came })).toMatchObject({ why: 'unknown_job' })
  expect((await store.queue.jobs({ ids: [rollout] }))[0]?.state).toBe('leased')
})

it('are cancelled when nobody waits any more, and those of an earlier process are nobody’s', async () => {
  const stopped = verify()
  const by = await session()
  const one = await claimed(by)
  stop.abort(new Error('enough'))
  await expect(stopped).rejects.toThrow('enough')
  expect((await store.queue.jobs({ ids: [one.lease.jobId] }))[0]).toMatchObject({ cancelAsked: true })
  stop = new AbortController()
  const left = verify()
  await expect.poll(async () => (await store.queue.jobs({})).filter(({ state }) => state === 'ready').length).toBe(1)
  const next = new VerifyJobs({ store, here: null, places: 1, onFailure: () => undefined })
  expect(await next.claim(by, { requestId: newId(), limit: 4, without: [] })).toEqual([])
  await jobs.close()
  await expect(left).rejects.toMatchObject({ code: 'OWNER_STOPPING' })
  await expect(jobs.verify(asked(), stop.signal)).rejects.toMatchObject({ code: 'OWNER_STOPPING' })
})
