import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EngineControl } from '../engines/control.ts'
import { KnownWeights } from './known-weights.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const weightsOf = (weightVersion: EngineControl['weightVersion']): KnownWeights =>
  new KnownWeights({ weightVersion } as EngineControl)
const after = (ms: number): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(() => resolve('7'), ms)
  })

it('waits for an engine on a busy machine, which takes seconds to name its weights', async () => {
  const weights = weightsOf(() => after(20_000))
  const read = weights.read()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await read).toBe('7')
})

it('waits long for an engine that says nothing only once, and again when it has answered', async () => {
  let takes = Number.POSITIVE_INFINITY
  const weights = weightsOf(() => (takes < Number.POSITIVE_INFINITY ? after(takes) : new Promise(() => {})))
  const settled = async (ms: number): Promise<string | null | undefined> => {
    let found: string | null | undefined
    void weights.read().then((version) => {
      found = version
    })
    await vi.advanceTimersByTimeAsync(ms)
    return found
  }
  expect(await settled(29_999)).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  expect(await settled(1999)).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  takes = 1000
  expect(await settled(1000)).toBe('7')
  takes = 20_000
  expect(await settled(20_000)).toBe('7')
})
