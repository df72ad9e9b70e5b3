import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Id, newId, sha256, type Task, type Verdict } from '../../core/index.ts'
import type { Catalogue, HandedIn, HandIn, Lease, NewJob, Queue } from '../../trajectory/index.ts'

/** What hand-ins write, as its driver shows it. */
export interface OutcomesUnderTest {
  /** A rollout that has begun. */
  begin(): Promise<Id>
  of(rolloutId: Id): Promise<{
    readonly end: HandedIn['end']['end'] | null
    readonly endDetail: string | null
    readonly verdicts: readonly Verdict[]
    readonly taints: readonly string[]
  }>
}

/** A fresh, empty queue with the place into which its hand-ins write. */
export interface QueueUnderTest {
  readonly queue: Queue
  readonly outcomes: OutcomesUnderTest
  close(): Promise<void>
}

/** Hand-ins that write into a catalogue. */
export function catalogueOutcomes(catalogue: Catalogue): OutcomesUnderTest {
  return { begin: () => rolloutIn(catalogue), of: (rolloutId) => catalogue.rollout(rolloutId) }
}

const long = 60_000
const done = (digest = 'one', made: HandedIn | null = null): HandIn => ({ digest: sha256(digest), made, next: 'done' })
const again = (digest = 'one'): HandIn => ({ digest: sha256(digest), made: null, next: 'again' })

/** What every {@link Queue} driver must do. `make` gives a fresh, empty queue. */
export function queueContract(name: string, make: () => Promise<QueueUnderTest>): void {
  describe(`queue contract: ${name}`, () => {
    let made: QueueUnderTest
    let queue: Queue
    beforeEach(async () => {
      made = await make()
      queue = made.queue
    })
    afterEach(async () => made.close())

    const jobs = (count: number, more: Partial<NewJob> = {}): NewJob[] =>
      Array.from({ length: count }, (_, n) => ({ id: newId(), payload: { n }, ...more }))
    const node = async (nodeName = 'a', labels: readonly string[] = []): Promise<Id> => {
      const id = newId()
      await queue.join({ id, name: nodeName, labels }, long)
      return id
    }
    const claim = (session: Id, limit = 1, capacity: Readonly<Record<string, number>> = {}) =>
      queue.claim('work', session, { requestId: newId(), limit, capacity })
    const one = async (session: Id): Promise<Lease> => {
      const [lease] = await claim(session)
      if (lease === undefined) throw new Error('nothing to claim')
      return lease
    }
    /** The database's clock decides, and no timer here. */
    const lost = async (session: Id): Promise<void> => {
      await queue.beat(session, 0)
      expect((await queue.sweep()).sessions).toContain(session)
    }
    const ids = (leases: readonly Lease[]): readonly Id[] => leases.map(({ jobId }) => jobId)

    it('tells what a session is, from its beginning to behind its end, and of no other', async () => {
      const id = await node('a', ['gpu', 'ä'])
      const other = await node('b')
      expect(await queue.session(id)).toEqual({ id, name: 'a', labels: ['gpu', 'ä'], state: 'up' })
      await queue.drain(id)
      expect(await queue.session(id)).toMatchObject({ state: 'draining' })
      await queue.leave(id)
      expect(await queue.session(id)).toMatchObject({ name: 'a', state: 'gone' })
      expect(await queue.session(other)).toMatchObject({ name: 'b', state: 'up' })
      expect(await queue.session(newId())).toBeNull()
    })

    it('tells of whom a hand-in would be taken, late ones included, and of nobody that left', async () => {
      await queue.enqueue('work', jobs(4))
      const [busy, over, left, idle] = [await node(), await node('b'), await node('c'), await node('d')]
      const [late, gone] = [await one(over), await one(left)]
      const held = await one(busy)
      await lost(over)
      await queue.leave(left)
      const told = async () => (await queue.holders()).map(({ id, state }) => `${id} ${state}`).toSorted()
      expect(await told()).toEqual([`${busy} up`, `${over} gone`].toSorted())
      expect(await queue.handIn(gone, done())).toMatchObject({ accepted: false, why: 'not_yours' })
      // Whoever ends a session over time takes nothing of it any more, and its job is nobody's.
      await queue.leave(over)
      expect(await queue.handIn(late, done())).toMatchObject({ accepted: false, why: 'not_yours' })
      expect((await queue.depth('work')).ready).toBe(3)
      expect(await queue.handIn(held, done())).toMatchObject({ accepted: true })
      expect(await told()).toEqual([])
      expect(await queue.session(idle)).toMatchObject({ state: 'up' })
    })

    describe('claims', () => {
      it('give each job to one session, higher priority before, then the oldest', async () => {
        const low = jobs(3)
        const high = jobs(1, { priority: 5 })
        await queue.enqueue('work', [...low, ...high])
        const first = await claim(await node(), 2)
        const rest = await claim(await node('b'), 9)
        expect([...ids(first), ...ids(rest)]).toEqual([...high, ...low].map(({ id }) => id))
        expect(await claim(await node('c'), 9)).toEqual([])
      })

      it('take an id once and give the payload back as it was', async () => {
        const job = { id: newId(), payload: { text: 'ä\u2028', list: [1, null, 'x'] } }
        await queue.enqueue('work', [job])
        await queue.enqueue('work', [{ ...job, payload: 'changed' }])
        const session = await node()
        expect((await one(session)).payload).toEqual(job.payload)
        expect(await claim(session)).toEqual([])
      })

      it('keep topics apart', async () => {
        await queue.enqueue('other', jobs(1))
        expect(await claim(await node())).toEqual([])
        expect((await queue.depth('other')).ready).toBe(1)
      })

      it('give the same jobs for the same request, as far as they are still held', async () => {
        await queue.enqueue('work', jobs(3))
        const session = await node()
        const request = { requestId: newId(), limit: 2, capacity: {} }
        const first = await queue.claim('work', session, request)
        expect(await queue.claim('work', session, request)).toEqual(first)
        const [held, ended] = first as [Lease, Lease]
        await queue.handIn(ended, done())
        expect(await queue.claim('work', session, request)).toEqual([held])
        expect(await claim(session, 9)).toHaveLength(1)
      })

      it('give each topic its own jobs for one request', async () => {
        const [one, other] = [jobs(1), jobs(1)]
        await queue.enqueue('work', one)
        await queue.enqueue('else', other)
        const session = await node()
        const request = { requestId: newId(), limit: 2, capacity: {} }
        expect(ids(await queue.claim('work', session, request))).toEqual(one.map(({ id }) => id))
        expect(ids(await queue.claim('else', session, request))).toEqual(other.map(({ id }) => id))
      })

      it('finish a group before the next begins, also one that grew', async () => {
        const [a, b] = [newId(), newId()]
        const early = jobs(2, { groupId: a })
        const other = jobs(2, { groupId: b })
        await queue.enqueue('work', [...early, ...other])
        await claim(await node(), 1)
        const more = jobs(1, { groupId: a })
        await queue.enqueue('work', more)
        const rest = await claim(await node('b'), 9)
        expect(ids(rest)).toEqual([early[1], ...more, ...other].map((job) => job?.id))
      })

      it('go first to the groups that the node works on, within one priority', async () => {
        const [a, b] = [newId(), newId()]
        const [a1, a2] = jobs(2, { groupId: a }) as [NewJob, NewJob]
        const [b1, b2] = jobs(2, { groupId: b }) as [NewJob, NewJob]
        const urgent = jobs(1, { priority: 1 })
        await queue.enqueue('work', [a1, b1])
        const [first, second] = [await node(), await node('b')]
        await claim(first)
        await claim(second)
        await queue.enqueue('work', [a2, b2, ...urgent])
        expect(ids(await claim(second, 2))).toEqual([urgent[0]?.id, b2.id])
        expect(ids(await claim(first, 2))).toEqual([a2.id])
      })

      it('ask for labels of the node and for room in it, and pass over what does not fit', async () => {
        const gui = jobs(1, { needs: { labels: ['gui', 'arch=arm64'] } })
        const large = jobs(1, { needs: { capacity: { places: 1, gpus: 2 } } })
        const small = jobs(3, { needs: { capacity: { places: 1 } } })
        await queue.enqueue('work', [...gui, ...large, ...small])
        const plain = await claim(await node('plain', ['gui']), 9, { places: 2, gpus: 1 })
        expect(ids(plain)).toEqual(small.slice(0, 2).map(({ id }) => id))
        expect(plain[0]?.needs).toEqual({ labels: [], capacity: { places: 1 } })
        const able = await claim(await node('able', ['gui', 'arch=arm64', 'x']), 9, { places: 9, gpus: 2 })
        expect(ids(able)).toEqual([...gui, ...large, small[2]].map((job) => job?.id))
      })

      it('share the work without overlap among many at once', async () => {
        await queue.enqueue('work', jobs(50))
        const sessions = await Promise.all(Array.from({ length: 10 }, (_, n) => node(`node-${n}`)))
        const claimed = (await Promise.all(sessions.map((session) => claim(session, 7)))).flatMap(ids)
        expect(claimed).toHaveLength(50)
        expect(new Set(claimed).size).toBe(50)
      })

      it('are refused to a session that is unknown, draining or gone', async () => {
        await queue.enqueue('work', jobs(1))
        const [draining, left, over] = [await node(), await node('b'), await node('c')]
        await queue.drain(draining)
        await queue.leave(left)
        await lost(over)
        for (const session of [newId(), draining, left, over]) {
          await expect(claim(session)).rejects.toMatchObject({ code: 'NODE_SESSION_GONE' })
        }
        await expect(queue.join({ id: over, name: 'c', labels: [] }, long)).rejects.toMatchObject({
          code: 'NODE_SESSION_GONE',
        })
      })
    })

    describe('many at once', () => {
      it('settle 512 jobs once each, refuse every second hand-in and count no try twice', async () => {
        await queue.enqueue('work', jobs(512))
        const settled: Id[] = []
        let refused = 0
        const work = async (n: number): Promise<void> => {
          const session = await node(`node-${n}`)
          const other = newId()
          for (;;) {
            const leases = await claim(session, 5)
            if (leases.length === 0) {
              // Another may hold at this moment what it does not take.
              if ((await queue.depth('work')).ready === 0) return
              continue
            }
            for (const lease of leases) {
              const answers = await Promise.all([
                queue.handIn(lease, done(lease.jobId)),
                queue.handIn({ ...lease, session: other }, done(lease.jobId)),
                queue.handIn({ ...lease, token: lease.token + 1 }, done(lease.jobId)),
                queue.handIn(lease, done(lease.jobId)),
              ])
              settled.push(...answers.flatMap((answer) => (answer.accepted && !answer.repeated ? [lease.jobId] : [])))
              refused += answers.filter((answer) => !answer.accepted && answer.why === 'not_yours').length
              expect(answers.filter((answer) => answer.accepted)).toHaveLength(2)
            }
          }
        }
        await Promise.all(Array.from({ length: 8 }, (_, n) => work(n)))
        expect(settled).toHaveLength(512)
        expect(new Set(settled).size).toBe(512)
        expect(refused).toBe(1024)
        expect(await queue.depth('work')).toEqual({ ready: 0, leased: 0, done: 512, dead: 0, cancelled: 0 })
        expect((await queue.jobs({ ids: settled })).every(({ token, attempt }) => token === 1 && attempt === 1)).toBe(
          true,
        )
      })

      it('hold what is true of groups, cancels, sweeps and leaves that cross each other', async () => {
        const groups = Array.from({ length: 8 }, () => newId())
        await queue.enqueue(
          'work',
          groups.flatMap((groupId) => jobs(16, { groupId })),
        )
        await Promise.all([
          ...groups.map(async (groupId, n) => {
            const session = await node(`node-${n}`)
            const leases = await claim(session, 6)
            if (n % 2 === 0) await queue.leave(session)
            else await queue.beat(session, 0)
            await queue.enqueue('work', jobs(2, { groupId }))
            for (const lease of leases) await queue.handIn(lease, again(lease.jobId))
          }),
          ...groups.map((groupId) => queue.cancel({ groupId })),
          ...groups.map(() => queue.sweep()),
        ])
        await queue.sweep()
        const { leased, ready, cancelled, ...none } = await queue.depth('work')
        expect({ leased, all: ready + cancelled, ...none }).toEqual({ leased: 0, all: 8 * 18, done: 0, dead: 0 })
        const rest = await claim(await node('last'), 999)
        expect(rest).toHaveLength(ready)
      })
    })

    describe('sessions', () => {
      it('hold their jobs while they beat, also over time as long as nobody swept', async () => {
        await queue.enqueue('work', jobs(1))
        const session = await node()
        const held = await one(session)
        await queue.beat(session, 0)
        expect(await queue.beat(session, long)).toEqual({ alive: true, cancel: [] })
        expect(await queue.sweep()).toEqual({ sessions: [], ready: 0, dead: 0, cancelled: 0 })
        expect(await claim(await node('b'))).toEqual([])
        expect(await queue.handIn(held, done())).toMatchObject({ accepted: true })
      })

      it('are told that they are gone, and a late heartbeat takes nothing back', async () => {
        await queue.enqueue('work', jobs(1))
        const [late, next] = [await node(), await node('b')]
        const held = await one(late)
        await lost(late)
        expect(await queue.beat(late, long)).toEqual({ alive: false, cancel: [] })
        const taken = await one(next)
        expect(await queue.beat(late, long)).toMatchObject({ alive: false })
        expect(taken).toMatchObject({ jobId: held.jobId, token: held.token + 1, attempt: 2, session: next })
        expect(await queue.handIn(held, done('late'))).toEqual({ accepted: false, why: 'not_yours' })
        expect(await queue.handIn(taken, done('next'))).toMatchObject({ accepted: true, repeated: false })
      })

      it('of an earlier start of a node are over when it says so, those of others are not', async () => {
        await queue.enqueue('work', jobs(2))
        const [before, other] = [await node('a'), await node('b')]
        await claim(before)
        await claim(other)
        expect(await queue.retire('a')).toEqual({ sessions: [before], ready: 1, dead: 0, cancelled: 0 })
        expect(await claim(await node('a'), 9)).toHaveLength(1)
      })

      it('that drain finish what they have', async () => {
        await queue.enqueue('work', jobs(1))
        const session = await node()
        const held = await one(session)
        await queue.drain(session)
        expect(await queue.beat(session, long)).toMatchObject({ alive: true })
        expect(await queue.handIn(held, done())).toMatchObject({ accepted: true, state: 'done' })
      })

      it('that leave give back what they have, and no attempt is burnt', async () => {
        await queue.enqueue('work', jobs(1, { maxAttempts: 1 }))
        const session = await node()
        const held = await one(session)
        await queue.leave(session)
        expect(await queue.handIn(held, done())).toEqual({ accepted: false, why: 'not_yours' })
        expect(await one(await node('b'))).toMatchObject({ token: held.token + 1, attempt: 1 })
      })
    })

    describe('hand-ins', () => {
      it('are accepted of a session that is gone while nobody has claimed the job again', async () => {
        await queue.enqueue('work', jobs(1))
        const session = await node()
        const held = await one(session)
        await lost(session)
        expect((await queue.depth('work')).ready).toBe(1)
        expect(await queue.handIn(held, done())).toEqual({ accepted: true, repeated: false, state: 'done' })
        expect(await claim(await node('b'))).toEqual([])
      })

      it('need the token and the session, each of them', async () => {
        await queue.enqueue('work', jobs(1))
        const [session, other] = [await node(), await node('b')]
        const held = await one(session)
        for (const wrong of [
          { ...held, session: other },
          { ...held, token: held.token + 1 },
          { ...held, token: held.token - 1 },
        ]) {
          expect(await queue.handIn(wrong, done())).toEqual({ accepted: false, why: 'not_yours' })
        }
        expect(await queue.handIn({ ...held, jobId: newId() }, done())).toEqual({ accepted: false, why: 'unknown_job' })
        expect((await queue.depth('work')).leased).toBe(1)
      })

      it('may be repeated with the same content, and never with other', async () => {
        await queue.enqueue('work', jobs(1))
        const held = await one(await node())
        expect(await queue.handIn(held, done('x'))).toEqual({ accepted: true, repeated: false, state: 'done' })
        expect(await queue.handIn(held, done('x'))).toEqual({ accepted: true, repeated: true, state: 'done' })
        expect(await queue.handIn(held, done('y'))).toEqual({ accepted: false, why: 'differs' })
        expect(await queue.giveBack(held, 'failure')).toBe(false)
        expect((await queue.depth('work')).done).toBe(1)
      })

      it('are known as repeated also when the job went on to another session', async () => {
        await queue.enqueue('work', jobs(1))
        const held = await one(await node())
        expect(await queue.handIn(held, again('x'))).toEqual({ accepted: true, repeated: false, state: 'ready' })
        await one(await node('b'))
        expect(await queue.handIn(held, again('x'))).toEqual({ accepted: true, repeated: true, state: 'leased' })
        expect(await queue.handIn(held, done('y'))).toEqual({ accepted: false, why: 'differs' })
      })

      it('for another attempt end in `dead` where none is left', async () => {
        await queue.enqueue('work', jobs(1, { maxAttempts: 2 }))
        const session = await node()
        const first = await one(session)
        expect(await queue.handIn(first, again())).toMatchObject({ state: 'ready' })
        const second = await one(session)
        expect(second).toMatchObject({ attempt: first.attempt + 1, token: first.token + 1 })
        expect(await queue.handIn(second, again())).toMatchObject({ state: 'dead' })
        expect(await claim(session)).toEqual([])
      })

      it('write what they bring into the catalogue, once, and nothing of what is refused', async () => {
        await queue.enqueue('work', jobs(1))
        const rolloutId = await made.outcomes.begin()
        const [late, next] = [await node(), await node('b')]
        const held = await one(late)
        await lost(late)
        const taken = await one(next)
        const verdict = verdictOf(rolloutId)
        const end = { at: 20, end: 'completed', detail: 'well' } as const
        const brought: HandedIn = { rolloutId, taints: ['engine 502'], verdict, end }
        expect(await queue.handIn(held, done('late', brought))).toMatchObject({ accepted: false })
        expect(await made.outcomes.of(rolloutId)).toMatchObject({ end: null, verdicts: [], taints: [] })
        await queue.handIn(taken, done('next', brought))
        await queue.handIn(taken, done('next', brought))
        expect(await made.outcomes.of(rolloutId)).toMatchObject({
          end: 'completed',
          endDetail: 'well',
          verdicts: [verdict],
          taints: ['engine 502'],
        })
      })

      it('that contradict what was handed in before leave job and rollout as they were', async () => {
        await queue.enqueue('work', jobs(2))
        const rolloutId = await made.outcomes.begin()
        const earlier: HandedIn = {
          rolloutId,
          taints: [],
          verdict: null,
          end: { at: 1, end: 'infra', detail: 'earlier' },
        }
        await queue.handIn(await one(await node()), done('earlier', earlier))
        const held = await one(await node())
        const end = { at: 20, end: 'completed', detail: '' } as const
        const brought: HandedIn = { rolloutId, taints: ['x'], verdict: verdictOf(rolloutId), end }
        await expect(queue.handIn(held, done('a', brought))).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
        expect(await made.outcomes.of(rolloutId)).toMatchObject({ end: 'infra', verdicts: [], taints: [] })
        expect(await queue.handIn(held, done('b'))).toMatchObject({ accepted: true, repeated: false })
      })
    })

    describe('jobs that are not done', () => {
      it('go back at once or after a delay; a drain burns no attempt, a failure does', async () => {
        await queue.enqueue('work', jobs(1))
        const session = await node()
        const first = await one(session)
        expect(await queue.giveBack(first, 'drain')).toBe(true)
        const second = await one(session)
        expect(second).toMatchObject({ attempt: 1, token: first.token + 1 })
        expect(await queue.giveBack(first, 'failure')).toBe(false)
        expect(await queue.giveBack(second, 'failure')).toBe(true)
        const third = await one(session)
        expect(third).toMatchObject({ attempt: 2, token: second.token + 1 })
        expect(await queue.giveBack(third, 'failure', 3_600_000)).toBe(true)
        expect(await claim(session)).toEqual([])
      })

      it('are dead when a lost session took their last attempt, and a late hand-in still counts', async () => {
        await queue.enqueue('work', jobs(1, { maxAttempts: 1 }))
        const session = await node()
        const held = await one(session)
        await queue.beat(session, 0)
        expect(await queue.sweep()).toEqual({ sessions: [session], ready: 0, dead: 1, cancelled: 0 })
        expect(await claim(await node('b'))).toEqual([])
        expect(await queue.handIn(held, done())).toMatchObject({ accepted: true, state: 'done' })
      })

      it('are dead after the last failure', async () => {
        await queue.enqueue('work', jobs(1, { maxAttempts: 1 }))
        expect(await queue.giveBack(await one(await node()), 'failure')).toBe(true)
        expect((await queue.depth('work')).dead).toBe(1)
      })

      it('are cancelled while they wait, and asked to stop while they are held', async () => {
        const runId = newId()
        const groupId = newId()
        await queue.enqueue('work', jobs(3, { runId, groupId }))
        await queue.enqueue('work', jobs(1, { runId }))
        const session = await node()
        const held = await one(session)
        expect(await queue.cancel({ runId, groupId })).toEqual({ cancelled: 2, asked: 1 })
        expect(await queue.cancel({ groupId })).toEqual({ cancelled: 0, asked: 0 })
        expect(await queue.beat(session, long)).toEqual({ alive: true, cancel: [held.jobId] })
        expect(await queue.handIn(held, done())).toMatchObject({ accepted: true, state: 'done' })
        expect(await queue.beat(session, long)).toEqual({ alive: true, cancel: [] })
        expect(await queue.depth('work')).toEqual({ ready: 1, leased: 0, done: 1, dead: 0, cancelled: 2 })
      })

      it('do not come again once somebody wants them stopped, whatever becomes of their session', async () => {
        await queue.enqueue('work', jobs(4))
        const [a, b] = [await node(), await node('b')]
        const [first, second] = (await claim(a, 2)) as [Lease, Lease]
        const [third, fourth] = (await claim(b, 2)) as [Lease, Lease]
        await queue.cancel({ ids: [first, second, third, fourth].map(({ jobId }) => jobId) })
        expect(await queue.giveBack(first, 'drain')).toBe(true)
        expect(await queue.handIn(second, again())).toMatchObject({ accepted: true, state: 'cancelled' })
        await queue.leave(b)
        expect((await queue.depth('work')).cancelled).toBe(4)
      })

      it('are listed with state, holder and attempts', async () => {
        const runId = newId()
        const [first, second] = jobs(2, { runId }) as [NewJob, NewJob]
        await queue.enqueue('work', [first, second])
        const session = await node()
        await one(session)
        const shared = { topic: 'work', runId, groupId: null, cancelAsked: false }
        expect(await queue.jobs({ runId })).toEqual([
          { ...shared, id: first.id, payload: { n: 0 }, state: 'leased', token: 1, attempt: 1, session },
          { ...shared, id: second.id, payload: { n: 1 }, state: 'ready', token: 0, attempt: 0, session: null },
        ])
        expect(await queue.jobs({ ids: [second.id] })).toHaveLength(1)
        expect(await queue.jobs({ runId: newId() })).toEqual([])
      })
    })
  })
}

async function rolloutIn(catalogue: Catalogue): Promise<Id> {
  const task: Task = {
    digest: sha256('task'),
    name: 'one',
    environment: 'terminal',
    instruction: 'do',
    split: 'train',
    data: null,
    source: 'a',
  }
  const run = { id: newId(), name: 'r', createdAt: 1, config: {} }
  const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: '', createdAt: 2 }
  await catalogue.putTask(task)
  await catalogue.putRun(run)
  await catalogue.putGroup(group)
  const rollout = { id: newId(), runId: run.id, groupId: group.id, slot: 0, attempt: 0, harness: 'x', createdAt: 3 }
  await catalogue.putRollout(rollout)
  return rollout.id
}

function verdictOf(rolloutId: Id): Verdict {
  return {
    id: newId(),
    rolloutId,
    at: 9,
    status: 'scored',
    reward: 1,
    components: {},
    steps: [],
    evidence: '',
    artifacts: [],
    verifier: { id: 'v', version: '1', sha256: sha256('v') },
    trust: 'separate',
    by: 'verifier',
    costTokens: 0,
    supersedes: null,
  }
}
