import { expect, it } from 'vitest'
import { WaitingClaims } from './waiting-claims.ts'

/** What can be claimed, and how often somebody looked. */
class Work {
  readonly waiting = new WaitingClaims()
  readonly ready: string[] = []
  looks = 0

  put(...jobs: readonly string[]): void {
    this.ready.push(...jobs)
    this.waiting.ring()
  }

  claim(o: { readonly limit?: number; readonly kind?: string; readonly waitMs?: number; readonly gone?: AbortSignal }) {
    const { limit = 1, kind = 'any', waitMs = 60_000, gone = new AbortController().signal } = o
    const attempt = async () => {
      this.looks += 1
      const fits = this.ready.filter((job) => kind === 'any' || job.startsWith(kind)).slice(0, limit)
      for (const job of fits) this.ready.splice(this.ready.indexOf(job), 1)
      return fits
    }
    return this.waiting.claim({ kind, limit, waitMs, signal: gone, attempt })
  }
}

const settled = (): Promise<unknown> => new Promise(setImmediate)

it('a claim that finds nothing waits and looks no more, and is given the first job that comes', async () => {
  const work = new Work()
  const claim = work.claim({ limit: 2 })
  await settled()
  expect([work.looks, work.waiting.size]).toEqual([1, 1])
  work.put('a')
  expect(await claim).toEqual(['a'])
  expect([work.looks, work.waiting.size]).toEqual([2, 0])
  expect(await work.claim({ waitMs: 0 })).toEqual([])
  expect(await work.claim({ waitMs: 5 })).toEqual([])
})

it('a job costs one claim of those that wait, and more jobs as many as there is work for', async () => {
  const work = new Work()
  const claims = Array.from({ length: 50 }, () => work.claim({ limit: 2 }))
  await settled()
  work.looks = 0
  work.put('a')
  expect(await claims[0]).toEqual(['a'])
  await settled()
  expect(work.looks).toBe(1)
  work.put('b', 'c', 'd')
  expect(await Promise.all([claims[1], claims[2]])).toEqual([['b', 'c'], ['d']])
  await settled()
  expect([work.looks, work.waiting.size]).toEqual([3, 47])
  work.waiting.close()
  expect(await Promise.all(claims.slice(3))).toEqual(Array.from({ length: 47 }, () => []))
})

it('one of each kind is tried, and one that is gone, fails or may be gone keeps nothing from the others', async () => {
  const work = new Work()
  const gone = new AbortController()
  const others = [work.claim({ kind: 'gpu', gone: gone.signal }), work.claim({ kind: 'gpu' })]
  const cpu = work.claim({ kind: 'cpu' })
  let fails = false
  const failing = work.waiting.claim({
    kind: 'x',
    limit: 1,
    waitMs: 60_000,
    signal: new AbortController().signal,
    attempt: async () => {
      if (fails) throw new Error('its session is over')
      return []
    },
  })
  const away = work.waiting.claim({
    kind: 'x',
    limit: 1,
    waitMs: 60_000,
    signal: new AbortController().signal,
    attempt: async () => (fails ? 'away' : []),
  })
  const last = work.waiting.claim({
    kind: 'x',
    limit: 1,
    waitMs: 60_000,
    signal: new AbortController().signal,
    attempt: async () => (fails ? ['x1'] : []),
  })
  await settled()
  fails = true
  work.put('cpu1', 'gpu1')
  gone.abort()
  await expect(failing).rejects.toThrow('its session is over')
  expect(await away).toEqual([])
  expect(await last).toEqual(['x1'])
  expect(await cpu).toEqual(['cpu1'])
  const [first, second] = await Promise.all([others[0], Promise.race([others[1], settled()])])
  expect([first, second].flat().filter((job) => job !== undefined)).toEqual(['gpu1'])
  work.waiting.close()
})

it('what comes while a claim looks is not missed', async () => {
  const work = new Work()
  const look = Promise.withResolvers<void>()
  let looks = 0
  const claim = work.waiting.claim({
    kind: 'any',
    limit: 1,
    waitMs: 60_000,
    signal: new AbortController().signal,
    attempt: async () => {
      looks += 1
      if (looks > 1) return work.ready.splice(0, 1)
      await look.promise
      return []
    },
  })
  await settled()
  work.put('a')
  look.resolve()
  expect(await claim).toEqual(['a'])
})
