import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { withLock } from './lock.ts'

it('lets one work at a time in this process, in order, also after a failure', async () => {
  const seen: number[] = []
  let inside = 0
  const work = (i: number) => async (): Promise<void> => {
    expect((inside += 1)).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(i)
    inside -= 1
    if (i === 1) throw new Error('one failed')
  }
  const all = await Promise.allSettled([0, 1, 2, 3].map((i) => withLock('test-order', work(i))))
  expect(seen).toEqual([0, 1, 2, 3])
  expect(all.map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
})

it('is held against other processes and freed by the death of its holder', async () => {
  const name = `test-death-${process.pid}`
  const holder = fork(new URL('./lock.fixture.ts', import.meta.url), [name])
  await once(holder, 'message')
  let entered = false
  const mine = withLock(name, async () => {
    entered = true
  })
  const stop = new AbortController()
  const impatient = withLock(`${name}`, async () => undefined, stop.signal)
  stop.abort(new Error('enough'))
  expect(entered).toBe(false)
  holder.kill('SIGKILL')
  await mine
  expect(entered).toBe(true)
  await expect(impatient).rejects.toThrow('enough')
})
