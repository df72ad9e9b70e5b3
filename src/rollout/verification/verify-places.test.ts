import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { VerifyPlaces, type VerifyPlaceRequest } from './verify-places.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const { signal } = new AbortController()
const asked = (order: number, groupId = 'a', deadlineMs: number | null = 40_000): VerifyPlaceRequest => ({
  order,
  groupId,
  deadlineMs,
})

/** Asks for places; the answer names those that are in, in the order in which they came in. */
function queue(places: VerifyPlaces, ...requests: readonly VerifyPlaceRequest[]) {
  const held = new Map<number, Disposable>()
  for (const one of requests) void places.enter(signal, one).then((place) => held.set(one.order, place))
  return { held, in: () => [...held.keys()] }
}

test('as many as the limit are in at once, earlier members first', async () => {
  const places = new VerifyPlaces(2)
  const { held, in: isIn } = queue(places, asked(3), asked(5, 'a', null), asked(4), asked(1))
  await vi.advanceTimersByTimeAsync(0)
  expect(isIn()).toEqual([3, 5])
  held.get(3)?.[Symbol.dispose]()
  await vi.advanceTimersByTimeAsync(0)
  expect(isIn()).toEqual([3, 5, 1])
})

test('two verifiers that hang cost a group of sixteen with a deadline no more than their own members', async () => {
  const places = new VerifyPlaces(2)
  const { held, in: isIn } = queue(places, ...Array.from({ length: 16 }, (_, i) => asked(i)))
  const hang = new Set([0, 1])
  for (let second = 0; second < 40; second += 1) {
    await vi.advanceTimersByTimeAsync(1000)
    for (const [order, place] of held) if (!hang.has(order)) place[Symbol.dispose]()
  }
  expect(isIn()).toHaveLength(16)
})

test('a task whose verifiers all hang leaves room for another task', async () => {
  const places = new VerifyPlaces(2)
  const hanging = queue(places, asked(0), asked(1), asked(2), asked(3))
  const healthy = queue(places, asked(4, 'b'), asked(5, 'b'), asked(6, 'b'), asked(7, 'b'))
  for (let second = 0; second < 20; second += 1) {
    await vi.advanceTimersByTimeAsync(1000)
    for (const place of healthy.held.values()) place[Symbol.dispose]()
  }
  expect(healthy.in()).toHaveLength(4)
  expect(hanging.in().length).toBeLessThanOrEqual(4)
})

test('never more than twice the limit, and none beyond it without a deadline', async () => {
  const places = new VerifyPlaces(2)
  const { in: isIn } = queue(places, ...Array.from({ length: 9 }, (_, i) => asked(i)))
  await vi.advanceTimersByTimeAsync(100_000)
  expect(isIn()).toEqual([0, 1, 2, 3])
  const patient = queue(new VerifyPlaces(2), ...Array.from({ length: 9 }, (_, i) => asked(i, 'a', null)))
  await vi.advanceTimersByTimeAsync(10_000_000)
  expect(patient.in()).toEqual([0, 1])
})

test('one who gives up waiting loses the turn, and a place that is given back twice is one place', async () => {
  const places = new VerifyPlaces(1)
  const first = await places.enter(signal, asked(0))
  const leaving = new AbortController()
  const second = places.enter(leaving.signal, asked(1))
  const { in: isIn } = queue(places, asked(2), asked(3))
  leaving.abort(new Error('gone'))
  await expect(second).rejects.toThrow('gone')
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  await vi.advanceTimersByTimeAsync(0)
  expect(isIn()).toEqual([2])
})
