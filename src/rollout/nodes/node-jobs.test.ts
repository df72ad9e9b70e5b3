/** The coordinator's side of nodes over real stores: whose a job is, and what is ingested. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { type Clock, type Id, newId, sha256, systemClock } from '../../core/index.ts'
import { type LeaseKey, openStore, type OwnedStore, packRollout, type RolloutView } from '../../trajectory/index.ts'
import { groupSpec } from '../group/spec.ts'
import { endInterrupted } from '../interrupted.ts'
import { NodeJobs } from './index.ts'

let directory: string
let store: OwnedStore
let node: OwnedStore
let jobs: NodeJobs
const slots = [0, 1]
beforeEach(async () => {
  directory = tempDir()
  store = await openStore(join(directory, 'here'))
  node = await openStore(join(directory, 'node'))
  await prepared(store)
  await prepared(node)
  await store.queue.enqueue(
    topic,
    slots.map((slot) => ({ id: ids[slot] ?? '', payload: { slot }, runId: run.id, groupId: group.id })),
  )
  clock.ahead = 0
  jobs = coordinator(store)
})
afterEach(async () => {
  jobs.close()
  await Promise.all([store.close(), node.close()])
})

const task = {
  digest: sha256('task'),
  name: 'one',
  environment: 'none',
  instruction: 'do it',
  split: 'train' as const,
  data: {},
  source: 'here',
}
const run = { id: newId(), name: 'r', createdAt: 1, config: {} }
const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: '', createdAt: 2 }
const topic = `run/${run.id}`
const ids = [newId(), newId()]

async function prepared({ catalogue }: OwnedStore): Promise<void> {
  await catalogue.putTask(task)
  await catalogue.putRun(run)
  await catalogue.putGroup(group)
}

const partsOf = ({ queue, recorder, catalogue, blobs }: OwnedStore) => ({ queue, recorder, catalogue, blobs })

function bound<T extends object>(target: T, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target)
  return typeof value === 'function' ? value.bind(target) : value
}

/** The process's clock is later by this with every look. What the database decides it does not touch. */
const clock = { ahead: 0 }
function ticking(): Clock {
  let at = 0
  return { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + (at += clock.ahead) }
}

function coordinator(
  on: Pick<OwnedStore, 'queue' | 'recorder' | 'catalogue' | 'blobs'>,
  isHere: (slot: number) => boolean = () => false,
): NodeJobs {
  const made = new NodeJobs({ store: on, leaseMs: 600_000, onFailure: () => undefined, clock: ticking() })
  made.add({
    runId: run.id,
    tasks: directory,
    order: async () => ({
      run,
      request: {},
      harness: { name: 'h', version: '1' },
      environment: { name: 'none', verifierVersion: '1' },
      trainingStep: null,
    }),
    claim: async (session, request) => {
      const claimed = await made.overtake(await on.queue.claim(topic, session, request))
      const jobs = claimed.map(({ jobId, token, payload }) => ({
        lease: { jobId, session, token },
        group,
        spec: groupSpec({ n: 2 }),
        task: task.digest,
        slot: (payload as { slot: number }).slot,
        attempt: 0,
        place: 0,
        parents: [],
      }))
      const given = jobs.filter(({ slot }) => !isHere(slot))
      return { jobs: given, someHere: given.length < jobs.length }
    },
    next: (_jobId: Id, { end }: RolloutView) => (end === 'infra' ? 'again' : 'done'),
    parents: async () => [],
    ended: async () => undefined,
    note: () => undefined,
  })
  return made
}

const open = (token = 'a') => jobs.open(token, { name: `node-${token}`, labels: [] })

async function claimed(session: Id, token = 'a'): Promise<LeaseKey> {
  const [job] = await jobs.claim(token, session, {
    requestId: newId(),
    limit: 1,
    capacity: {},
    without: [],
    mark: jobs.weights.now.mark,
  })
  if (job === undefined) throw new Error('nothing to claim')
  return job.lease
}

/** What a node made, as it hands it in. */
async function made(slot: number, o: { readonly attempt?: number; readonly end?: 'completed' | 'infra' } = {}) {
  const id = newId()
  const { attempt = 0, end = 'completed' } = o
  const identity = { runId: run.id, groupId: group.id, slot, attempt, harness: 'h', createdAt: 3 }
  await node.catalogue.putRollout({ id, ...identity })
  await node.catalogue.endRollout(id, 8, end, 'well')
  return { ...(await packRollout(node, id)), fault: null }
}

/** The database decides that a session is over, and no timer here. */
async function lost(session: Id): Promise<void> {
  await store.queue.beat(session, 0)
  expect((await store.queue.sweep()).sessions).toContain(session)
}

it('takes a rollout in once, answers the same again, and refuses another one under the same claim', async () => {
  const lease = await claimed(await open())
  const rollout = await made(0)
  expect(await jobs.handIn('a', lease, rollout)).toMatchObject({ accepted: true, repeated: false, state: 'done' })
  expect(await jobs.handIn('a', lease, rollout)).toMatchObject({ accepted: true, repeated: true, state: 'done' })
  await expect(jobs.handIn('a', lease, await made(0, { attempt: 1 }))).resolves.toMatchObject({ why: 'differs' })
  expect((await store.catalogue.rollouts({ groupId: group.id })).map(({ id }) => id)).toEqual([rollout.rolloutId])
  expect(jobs.handIns).toEqual({ accepted: 1, repeated: 1, refused: 1 })
})

it('takes a late one in where nobody claimed the job meanwhile, and nothing of it where somebody did', async () => {
  const session = await open()
  const [first, second] = [await claimed(session), await claimed(session)]
  await lost(session)
  expect(await jobs.handIn('a', first, await made(0))).toMatchObject({ accepted: true, repeated: false })
  const other = await open('b')
  expect((await claimed(other, 'b')).jobId).toBe(second.jobId)
  const late = await made(1)
  expect(await jobs.handIn('a', second, late)).toMatchObject({ accepted: false, why: 'not_yours' })
  await expect(store.catalogue.rollout(late.rolloutId)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await store.recorder.events({ rolloutId: late.rolloutId })).toEqual([])
  expect(await jobs.beat('a', session, [second])).toEqual({
    alive: false,
    stop: [{ jobId: second.jobId, why: 'lost' }],
  })
})

it('lets nothing be claimed while a late rollout is ingested', async () => {
  const meanwhile: Promise<unknown>[] = []
  const { recorder } = store
  const claiming = new Proxy(recorder, {
    get: (target, name) => {
      if (name !== 'takeIn') return bound(target, name)
      return async (...sent: Parameters<typeof recorder.takeIn>) => {
        const asked = { requestId: newId(), limit: 2, capacity: {}, without: [], mark: jobs.weights.now.mark }
        meanwhile.push(jobs.claim('b', other, asked))
        // A claim that waits for nobody is done by then: the queue serves one call after the other.
        for (let at = 0; at < 10; at += 1) await store.queue.depth(topic)
        return recorder.takeIn(...sent)
      }
    },
  })
  jobs.close()
  jobs = coordinator({ ...partsOf(store), recorder: claiming })
  const session = await open()
  const lease = await claimed(session)
  await lost(session)
  const other = await open('b')
  const rollout = await made(0)
  expect(await jobs.handIn('a', lease, rollout)).toMatchObject({ accepted: true, state: 'done' })
  expect(await Promise.all(meanwhile)).toMatchObject([[{ slot: 1 }]])
})

it('answers a claim whose job is done in this process at once: only another claim finds the job behind it', async () => {
  jobs = coordinator(store, (slot) => slot === 0)
  const session = await open()
  const asked = { limit: 1, capacity: {}, without: [], mark: jobs.weights.now.mark, waitMs: 3_600_000 }
  expect(await jobs.claim('a', session, { ...asked, requestId: newId() })).toEqual([])
  expect(await jobs.claim('a', session, { ...asked, requestId: newId() })).toMatchObject([{ slot: 1 }])
})

it('completes what was cut off while it was ingested, and the start of an owner between does not end it', async () => {
  const dying = new Proxy(store.catalogue, {
    get: (target, name) =>
      name === 'endRollout' ? async () => Promise.reject(new Error('killed')) : bound(target, name),
  })
  const whole = jobs
  jobs = coordinator({ ...partsOf(store), catalogue: dying })
  const lease = await claimed(await open())
  const rollout = await made(0)
  await expect(jobs.handIn('a', lease, rollout)).rejects.toThrow('killed')
  jobs.close()
  jobs = whole
  expect(await endInterrupted(store)).toMatchObject({ ended: 0 })
  expect(await jobs.handIn('a', lease, rollout)).toMatchObject({ accepted: true, repeated: false, state: 'done' })
  expect(await store.catalogue.rollout(rollout.rolloutId)).toMatchObject({ end: 'completed', endDetail: 'well' })
})

it('ends what a node had begun to hand in and never finished, once another attempt takes over, and takes no more of it', async () => {
  jobs.close()
  // Before its log is there, which this process alone knows of, and behind that.
  for (const [slot, dies] of (['takeIn', 'endRollout'] as const).entries()) {
    let isFull = true
    const full = <Part extends object>(part: Part): Part =>
      new Proxy(part, {
        get: (target, name) =>
          isFull && name === dies ? async () => Promise.reject(new Error('no space')) : bound(target, name),
      })
    jobs = coordinator({ ...partsOf(store), recorder: full(store.recorder), catalogue: full(store.catalogue) })
    const session = await open()
    const lease = await claimed(session)
    const rollout = await made(slot)
    await expect(jobs.handIn('a', lease, rollout)).rejects.toThrow('no space')
    isFull = false
    await lost(session)
    expect(await store.catalogue.rollout(rollout.rolloutId)).toMatchObject({ end: null })
    const next = await claimed(await open('b'), 'b')
    expect(next.jobId).toBe(lease.jobId)
    expect(await store.catalogue.rollout(rollout.rolloutId)).toMatchObject({
      end: 'infra',
      endDetail: 'its node never finished handing it in',
    })
    expect(await jobs.handIn('a', lease, rollout)).toMatchObject({ accepted: false, why: 'not_yours' })
    expect(await jobs.handIn('b', next, await made(slot, { attempt: 1 }))).toMatchObject({ state: 'done' })
    jobs.close()
  }
  const ends = (await store.catalogue.rollouts({ groupId: group.id })).map(({ slot, end }) => `${slot} ${end}`)
  expect(new Set(ends)).toEqual(new Set(['0 infra', '0 completed', '1 infra', '1 completed']))
  expect(ends).toHaveLength(4)
})

it('gives a job that ended as infra to the next, whose attempt is another one', async () => {
  const lease = await claimed(await open())
  expect(await jobs.handIn('a', lease, await made(0, { end: 'infra' }))).toMatchObject({ state: 'ready' })
  const next = await claimed(await open('b'), 'b')
  expect(next).toMatchObject({ jobId: lease.jobId, token: lease.token + 1 })
  await expect(jobs.handIn('b', next, await made(0, { attempt: 2 }))).rejects.toMatchObject({ code: 'NODE_NOT_YOURS' })
  expect(await jobs.handIn('b', next, await made(0, { attempt: 1 }))).toMatchObject({ accepted: true, state: 'done' })
})

it('gives a job on whose rollout is unverified, and does not end it when somebody claims that', async () => {
  const lease = await claimed(await open())
  const id = newId()
  await node.catalogue.putRollout({
    id,
    runId: run.id,
    groupId: group.id,
    slot: 0,
    attempt: 0,
    harness: 'h',
    createdAt: 3,
  })
  const figures = { calls: 1, sampledTokens: 1, agentMs: 1, at: 4, fault: null, shared: false, answered: true }
  await node.catalogue.putWork(id, { end: 'completed', detail: 'well', artifacts: [], ...figures })
  const handed = { ...(await packRollout(node, id)), fault: null }
  expect(await jobs.handIn('a', lease, handed)).toMatchObject({ accepted: true, repeated: false, state: 'ready' })
  const next = await claimed(await open('b'), 'b')
  expect(next).toMatchObject({ jobId: lease.jobId, token: 2 })
  expect(await store.catalogue.rollout(id)).toMatchObject({ end: null, work: { end: 'completed' } })
  expect(await jobs.handIn('a', lease, handed)).toMatchObject({ accepted: true, repeated: true })
})

const order = { mode: 'drain', cache: 'clear', timeoutMs: 300_000, frozen: false } as const
const done = () => ({ mark: jobs.weights.now.mark, failed: null })

it('waits at a pause until each node has answered that holds a job, for all of its sessions, and says who was last', async () => {
  const [early, late, idle] = [await open(), await open('b'), await open('c')]
  await claimed(early)
  await claimed(late, 'b')
  jobs.weights.serve()
  let over = false
  const paused = jobs.weights.pause(order).finally(() => (over = true))
  const { signal } = new AbortController()
  const told = await jobs.weightsFor('b', late, { also: [early], said: { mark: '', failed: null }, waitMs: 0, signal })
  expect(told).toMatchObject({ paused: { mode: 'drain' }, version: null, mark: jobs.weights.now.mark })
  await jobs.weightsFor('c', idle, { also: [early, late], said: done(), waitMs: 0, signal })
  await jobs.weightsFor('a', early, { also: [], said: done(), waitMs: 0, signal })
  // Sessions of other tokens are not answered for, and what is done of an older mark is no answer.
  expect(over).toBe(false)
  await jobs.weightsFor('b', late, { also: [], said: done(), waitMs: 0, signal })
  expect(await paused).toMatchObject({ answered: 2, slowest: { node: 'node-b' }, passed: [] })
  const asked = { also: [], said: done(), waitMs: 60_000, signal }
  const next = jobs.weightsFor('a', early, asked)
  jobs.weights.resume()
  expect(await next).toMatchObject({ paused: null })
})

it('passes over a node whose lease is over, or that lives and is silent: its jobs are free, and nothing of it is taken', async () => {
  const lapsed = await open()
  const first = await claimed(lapsed)
  await lost(lapsed)
  const silent = await open('b')
  const second = await claimed(silent, 'b')
  expect(second.jobId).toBe(first.jobId)
  const other = await open('c')
  const third = await claimed(other, 'c')
  await lost(other)
  jobs.weights.serve()
  // An own runner of this process has no part in it.
  await store.queue.join({ id: newId(), name: 'here', labels: [] }, 600_000)
  clock.ahead = 120_000
  expect(await jobs.weights.update({ version: 'v', cacheIsolated: true }, 60_000)).toMatchObject({
    answered: 0,
    slowest: null,
    passed: expect.arrayContaining([
      { node: 'node-b', why: 'silent' },
      { node: 'node-c', why: 'lapsed' },
    ]),
  })
  expect(await store.queue.depth(topic)).toMatchObject({ ready: 2, leased: 0 })
  for (const [token, lease, slot] of [
    ['b', second, 0],
    ['c', third, 1],
  ] as const) {
    const attempt = lease.token - 1
    expect(await jobs.handIn(token, lease, await made(slot, { attempt }))).toMatchObject({ why: 'not_yours' })
  }
  expect(await store.catalogue.rollouts({ groupId: group.id })).toEqual([])
  // Who is passed over once is not waited for again.
  expect(await jobs.weights.pause(order)).toMatchObject({ answered: 0, passed: [] })
})

it('gives no job to a node that has not done what it was told, and takes back what it claimed meanwhile', async () => {
  const session = await open()
  const { mark } = jobs.weights.now
  const ask = (by: string) =>
    jobs.claim('a', session, { requestId: newId(), limit: 1, capacity: {}, without: [], mark: by })
  jobs.weights.serve()
  const claiming = new Proxy(store.queue, {
    get: (target, name) => {
      if (name !== 'claim') return bound(target, name)
      return async (...sent: Parameters<typeof target.claim>) => {
        const leases = await target.claim(...sent)
        jobs.weights.believe({ version: 'v' })
        return leases
      }
    },
  })
  jobs.close()
  jobs = coordinator({ ...partsOf(store), queue: claiming })
  jobs.weights.serve()
  expect(await ask(mark)).toEqual([])
  expect(await ask(jobs.weights.now.mark)).toEqual([])
  expect(await store.queue.depth(topic)).toMatchObject({ ready: 2, leased: 0 })
  expect((await store.queue.jobs({ ids }))[0]).toMatchObject({ token: 1, attempt: 0 })
})

it('is for the sessions of the token that asks alone, and for the rollout that the job asks for', async () => {
  const session = await open()
  const lease = await claimed(session)
  const rollout = await made(0)
  const asks = [
    () => jobs.beat('b', session, []),
    () => claimed(session, 'b'),
    () => jobs.handIn('b', lease, rollout),
    () => jobs.giveBack('b', lease, { why: 'drain', reason: null }),
    () => jobs.drain('b', session),
    () => jobs.end('b', session),
    () => jobs.files('b', session, run.id),
    () => jobs.file('b', session, { runId: run.id, digest: sha256('x') }),
  ]
  for (const ask of asks) await expect(ask()).rejects.toMatchObject({ code: 'NODE_NOT_YOURS' })
  await expect(jobs.handIn('a', lease, await made(1))).rejects.toMatchObject({ code: 'NODE_NOT_YOURS' })
  expect(await store.catalogue.rollouts({ groupId: group.id })).toEqual([])
  expect(await jobs.handIn('a', lease, rollout)).toMatchObject({ accepted: true })
  await expect(jobs.beat('a', newId(), [])).rejects.toMatchObject({ code: 'NODE_SESSION_GONE' })
})

it('tells a node what to stop: what somebody cancelled, and what a stopped run wants back', async () => {
  const session = await open()
  const [one, other] = [await claimed(session), await claimed(session)]
  await store.queue.cancel({ ids: [one.jobId] })
  expect(await jobs.beat('a', session, [one, other])).toEqual({
    alive: true,
    stop: [{ jobId: one.jobId, why: 'cancelled' }],
  })
  jobs.remove(run.id, true)
  expect((await jobs.beat('a', session, [one, other])).stop).toContainEqual({ jobId: other.jobId, why: 'over' })
  expect(await jobs.giveBack('a', other, { why: 'drain', reason: null })).toBe(true)
  expect((await store.queue.jobs({ ids: [other.jobId] }))[0]).toMatchObject({ state: 'ready', attempt: 0 })
  expect(
    await jobs.claim('a', session, {
      requestId: newId(),
      limit: 2,
      capacity: {},
      without: [],
      mark: jobs.weights.now.mark,
    }),
  ).toEqual([])
})
