import { expect, it } from 'vitest'
import { Admission } from './admission.ts'

/** Starts whose duration the test decides, on a clock that the test turns. */
function bench() {
  let now = 0
  const admission = new Admission({ now: () => now, monotonic: () => now })
  const running: { end(): void; fail(): void }[] = []
  const start = (signal?: AbortSignal): Promise<void> =>
    admission.run(() => {
      const end = Promise.withResolvers<void>()
      running.push({ end: () => end.resolve(), fail: () => end.reject(new Error('no')) })
      return end.promise
    }, signal)
  return { admission, running, start, pass: (ms: number) => (now += ms) }
}

it('lets four begin, and more as starts stay quick', async () => {
  const { admission, running, start, pass } = bench()
  const all = Array.from({ length: 30 }, () => start())
  expect(running).toHaveLength(4)
  for (let i = 0; i < 30; i++) {
    pass(10)
    running[i]?.end()
    await all[i]
  }
  expect(admission.limit).toBeGreaterThan(4)
})

it('halves after a failure and after a start that is slow against the best', async () => {
  const { admission, running, start, pass } = bench()
  const first = start()
  pass(10)
  running[0]?.end()
  await first
  const before = admission.limit
  const second = start()
  pass(1000)
  running[1]?.end()
  await second
  expect(admission.limit).toBe(Math.floor((before + 0.25) / 2))
  const third = start()
  running[2]?.fail()
  await expect(third).rejects.toThrow('no')
  expect(admission.limit).toBe(1)
})

it('forgets who gives up waiting and still serves the rest', async () => {
  const { running, start } = bench()
  const all = Array.from({ length: 4 }, () => start())
  const stop = new AbortController()
  const impatient = start(stop.signal)
  const patient = start()
  stop.abort(new Error('enough'))
  await expect(impatient).rejects.toThrow('enough')
  for (const one of running) one.end()
  await Promise.all(all)
  expect(running).toHaveLength(5)
  running[4]?.end()
  await patient
})
