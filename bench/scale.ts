/**
 * Where many machines saturate: a simulation with measured costs (`bench/scale/costs.ts`), as no bench of ours has a thousand machines. Rollouts
 * of 10 minutes with a heavy tail, a hundred at once on each node, nodes that are killed or cut off every 6 hours; each row in a steady
 * state of half an hour, seeded.
 *
 *   node bench/scale.ts [--seed 1]      the table
 *   node bench/scale.ts --measure       what it takes for given, measured here (needs `sh scripts/machine world`)
 */
import { readFlags } from './flags.ts'
import { longHandInMb } from './scale/costs.ts'
import { measure } from './scale/measure.ts'
import { type Outcome, simulate } from './scale/world.ts'

const flags = readFlags({ seed: 1, measure: false }, {})
if (flags.measure || flags.smoke) await measure(flags.smoke)
if (!flags.measure) table()

function table(): void {
  const places = 100
  const short = 0.04
  const rows = [
    { rollouts: 1000, coordinators: 1, handInMb: short },
    { rollouts: 10_000, coordinators: 1, handInMb: short },
    { rollouts: 30_000, coordinators: 1, handInMb: short },
    { rollouts: 100_000, coordinators: 1, handInMb: short },
    { rollouts: 100_000, coordinators: 8, handInMb: short },
    { rollouts: 1000, coordinators: 1, handInMb: longHandInMb },
    { rollouts: 10_000, coordinators: 1, handInMb: longHandInMb },
    { rollouts: 100_000, coordinators: 1, handInMb: longHandInMb },
    { rollouts: 100_000, coordinators: 64, handInMb: longHandInMb },
    // The end of a run: nothing is left to claim, and every node asks.
    { rollouts: 10_000, coordinators: 1, handInMb: short, jobs: 0 },
    { rollouts: 100_000, coordinators: 1, handInMb: short, jobs: 0 },
  ]
  const head = [
    'rollouts',
    'nodes',
    'coordinators',
    'MB each',
    'settled/s',
    'wanted',
    'its turn',
    'its core',
    'PostgreSQL',
    'working',
  ]
  const waits = ['claim p50', 'p99', 'hand-in p50', 'p99 s', 'lost', 'refused', 'waiting MB']
  console.log(
    'its turn: time in which a coordinator had a claim or a hand-in under way, one after the other; its core: CPU of it; PostgreSQL: of 8 cores\n',
  )
  console.log([...head, ...waits].map((cell) => cell.padStart(12)).join(''))
  for (const { rollouts, coordinators, handInMb, jobs = rollouts * 10 } of flags.smoke ? rows.slice(0, 1) : rows) {
    const nodes = rollouts / places
    const outcome = simulate({
      seed: flags.seed,
      nodes,
      places,
      coordinators,
      postgresCores: 8,
      rolloutSeconds: 600,
      tail: 1,
      handInMb,
      jobs,
      failsEverySeconds: 6 * 3600,
      killedSeconds: 300,
      cutSeconds: 120,
      seconds: 3600,
      fromSeconds: 1800,
    })
    const wanted = jobs === 0 ? 0 : rollouts / 600
    console.log(rowOf([rollouts, nodes, coordinators, handInMb], wanted, outcome))
  }
}

function rowOf(of: readonly number[], wanted: number, outcome: Outcome): string {
  const { settledPerSecond, turn, coordinator, postgres, working, claim, handIn, lost, refused, waitingMb } = outcome
  const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`
  const seconds = (value: number): string => value.toFixed(value < 10 ? 2 : 0)
  const numbers = [
    settledPerSecond.toFixed(1),
    wanted.toFixed(1),
    percent(turn),
    percent(coordinator),
    percent(postgres),
    percent(working),
  ]
  const waits = [claim.p50, claim.p99, handIn.p50, handIn.p99].map(seconds)
  const cells = [...of, ...numbers, ...waits, percent(lost), refused, waitingMb.toFixed(0)]
  return cells.map((cell) => String(cell).padStart(12)).join('')
}
