/** The simulation of many machines (`bench/scale`): against formulas, and against what was measured. */
import { expect, it } from 'vitest'
import { habits as habitsOf, measured } from '../../bench/scale/costs.ts'
import { chanceFrom, Station, Timeline, Turn } from '../../bench/scale/events.ts'
import { simulate, type World } from '../../bench/scale/world.ts'

const small: World = {
  seed: 1,
  nodes: 20,
  places: 20,
  coordinators: 2,
  postgresCores: 2,
  rolloutSeconds: 60,
  tail: 1,
  handInMb: 0.04,
  jobs: 8000,
  failsEverySeconds: 900,
  killedSeconds: 120,
  cutSeconds: 120,
  seconds: 900,
  fromSeconds: 300,
}

it('comes to the same for the same seed, and to something else for another', () => {
  const one = simulate(small)
  expect(simulate(small)).toEqual(one)
  expect(simulate({ ...small, seed: 2 })).not.toEqual(one)
  // Nodes were killed and cut off beyond their leases.
  expect(one.lost).toBeGreaterThan(0)
  expect(one.refused).toBeGreaterThan(0)
})

it('asks twice a minute where nothing is left to claim, and does what a killed node had', () => {
  const { coordinator } = simulate({ ...small, jobs: 0, failsEverySeconds: null })
  const beats = (habitsOf.beatsPerLease / habitsOf.leaseSeconds) * measured.beat.coordinator
  const claims = measured.claim.coordinator / habitsOf.claimWaitSeconds
  expect(coordinator / ((small.nodes / small.coordinators) * (beats + claims))).toBeCloseTo(1, 1)
  const left = simulate({
    ...small,
    jobs: 20,
    coordinators: 1,
    rolloutSeconds: 3000,
    tail: 0,
    seconds: 9000,
    failsEverySeconds: 3000,
  })
  expect(left.settled).toBe(20)
})

it('settles each job once, all of them, whatever nodes do', () => {
  const outcome = simulate({ ...small, jobs: 1000, seconds: 3600 })
  expect(outcome.settled).toBe(1000)
})

it('waits as M/M/1 does: mean ρ / (μ − λ)', () => {
  const [chance, time] = [chanceFrom(7), new Timeline()]
  const station = new Station(time)
  const arrive = (): void => {
    station.serve(chance.exponential(1), () => undefined)
    time.after(chance.exponential(1 / 0.7), arrive)
  }
  arrive()
  time.run(200_000)
  const mean = station.waits.reduce((sum, wait) => sum + wait, 0) / station.waits.length
  expect(mean / (0.7 / (1 - 0.7))).toBeCloseTo(1, 1)
  expect(station.utilisation(200_000)).toBeCloseTo(0.7, 1)
})

it('has each turn once, in the order of asking but for who goes ahead, and knows for how long', () => {
  const time = new Timeline()
  const turn = new Turn(time)
  const ended: number[] = []
  for (const [seconds, ahead] of [
    [3, false],
    [1, false],
    [2, true],
  ] as const) {
    const work = (leave: () => void): void =>
      time.after(seconds, () => {
        ended.push(time.now)
        leave()
      })
    turn.take(work, { ahead })
  }
  time.run(12)
  expect(ended).toEqual([3, 5, 6])
  expect(turn.utilisation(12)).toBe(0.5)
})

it('keeps the law of utilisation: settled per second times what one costs', () => {
  const costs = { ...measured, claim: nothing, beat: nothing }
  const { settledPerSecond, coordinator, postgres } = simulate({ ...small, failsEverySeconds: null, costs })
  const each = measured.rollout.coordinator + measured.perMb.coordinator * small.handInMb
  expect(coordinator / ((settledPerSecond / small.coordinators) * each)).toBeCloseTo(1, 1)
  expect(postgres / ((settledPerSecond / small.postgresCores) * measured.rollout.postgres)).toBeCloseTo(1, 1)
})

const nothing = { coordinator: 0, postgres: 0 }

it.each([
  // `node bench/nodes.ts --rounds 8` on a quiet machine, 2026-11-26: 6 places per node, 10 s of model time.
  { nodes: 1, perSecond: 0.58 },
  { nodes: 2, perSecond: 1.11 },
])('predicts what $nodes nodes were measured to do, within a tenth', ({ nodes, perSecond }) => {
  const jobs = nodes * 6 * 8
  const none = { tail: 0, failsEverySeconds: null, coordinators: 1, fromSeconds: 0 }
  const { settled, secondsToSettle } = simulate({ ...small, ...none, nodes, places: 6, rolloutSeconds: 10, jobs })
  expect(settled).toBe(jobs)
  expect(Math.abs(jobs / secondsToSettle / perSecond - 1)).toBeLessThan(0.1)
})
