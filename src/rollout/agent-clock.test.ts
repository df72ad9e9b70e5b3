import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type AgentClock, AgentExpired, startAgentClock } from './agent-clock.ts'

let now = 0
let waited = 0
beforeEach(() => {
  now = 0
  waited = 0
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

function start(budgetMs: number, wallMs = 10_000): AgentClock {
  const clock = { now: () => now, monotonic: () => now }
  return startAgentClock({ budgetMs, wallMs, clock, modelWaitMs: () => waited })
}

/** Time passes; of it the model takes `modelMs`. */
function pass(ms: number, modelMs = 0): void {
  for (let step = 0; step < ms; step += 1) {
    now += 1
    if (step < modelMs) waited += 1
    vi.advanceTimersByTime(1)
  }
}

test('the time that the model takes is not the time of the agent', () => {
  const clock = start(100)
  pass(500, 450)
  expect(clock.signal.aborted).toBe(false)
  pass(49)
  expect(clock.signal.aborted).toBe(false)
  pass(1)
  expect(clock.signal.reason).toEqual(new AgentExpired('budget', 100))
  expect(clock.stop()).toBe(100)
})

test('the wall has a limit of its own', () => {
  const clock = start(100, 300)
  pass(299, 299)
  expect(clock.signal.aborted).toBe(false)
  pass(1, 1)
  expect(clock.signal.reason).toMatchObject({ limit: 'wall' })
})

test('a stopped clock stands still and never fires', () => {
  const clock = start(100)
  pass(30)
  expect(clock.stop()).toBe(30)
  pass(500)
  expect(clock.stop()).toBe(30)
  expect(clock.signal.aborted).toBe(false)
})

test('a held clock stands still, model and wall included, for as long as anybody holds it', () => {
  const clock = start(100, 300)
  pass(60, 20)
  const first = clock.hold()
  pass(1000, 500)
  const second = clock.hold()
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  pass(1000)
  second[Symbol.dispose]()
  expect(clock.signal.aborted).toBe(false)
  pass(59)
  expect(clock.signal.aborted).toBe(false)
  pass(1)
  expect(clock.signal.reason).toEqual(new AgentExpired('budget', 100))
})

test('a clock that is stopped while it is held has counted up to there', () => {
  const clock = start(100)
  pass(40)
  const held = clock.hold()
  pass(500)
  expect(clock.stop()).toBe(40)
  held[Symbol.dispose]()
  pass(500)
  expect(clock.signal.aborted).toBe(false)
})
