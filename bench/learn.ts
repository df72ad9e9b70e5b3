/**
 * `npm run learn:proof`: a model of two million parameters learns `doors` (examples/train/doors) behind a real vLLM, over
 * three seeds; beside a control whose rewards are shuffled within groups, a run at lag 2, and trainers that are given
 * damaged rows. Needs what `scripts/real-up` sets up. Prints a table; exit 1 where a line of it does not hold.
 * `--runs "seed 3,control"` does these runs alone. `--smoke` says nothing of what holds.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { doors, learn, openClassroom } from '../scripts/learn.ts'
import { readFlags } from './flags.ts'

const { steps, runs, smoke } = readFlags({ steps: 50, runs: '' }, { steps: 1, runs: 'seed 1' })
const root = fileURLToPath(new URL('..', import.meta.url))
const cache = execFileSync('sh', [join(root, 'scripts/real-up')], { encoding: 'utf8' }).trim()

const orders = [
  { name: 'seed 1', seed: 1, lag: 1, control: false },
  { name: 'seed 2', seed: 2, lag: 1, control: false },
  { name: 'seed 3', seed: 3, lag: 1, control: false },
  { name: 'lag 2', seed: 1, lag: 2, control: false },
  { name: 'control', seed: 1, lag: 1, control: true },
]
const asked = runs === '' ? [] : runs.split(',')
const unknown = asked.filter((name) => !orders.some((order) => order.name === name))
if (unknown.length > 0) {
  console.error(
    `USAGE: there is no run ${unknown.join(', ')}. Fix: use ${orders.map(({ name }) => `"${name}"`).join(', ')}.`,
  )
  process.exit(2)
}
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
console.log(`commit ${commit}; ${steps} steps of 4 groups of 8; rewards of 128 held-out clues, one attempt each\n`)
console.log('| run | before | after | gain | McNemar p | oldest row | mismatch, worst p99 | minutes | holds |')
console.log('|---|---|---|---|---|---|---|---|---|')
let allHold = true
const curves: string[] = []
{
  await using room = await openClassroom(cache, doors)
  for (const { name, ...order } of orders) {
    if (asked.length > 0 && !asked.includes(name)) continue
    const data = await mkdtemp(join(tmpdir(), 'paddock-learn-'))
    const learned = await learn(room, { name: 'doors', data, ...order, steps })
    await rm(data, { recursive: true })
    const { before, after, p } = learned
    const gain = after - before
    const holds = smoke || (order.control ? Math.abs(gain) <= 0.1 : gain >= 0.3 && p < 0.01)
    allHold &&= holds
    const age = Math.max(...learned.steps.map(({ values }) => values['age'] ?? 0))
    const worst = Math.max(...learned.steps.map(({ mismatch }) => mismatch.p99))
    const minutes = (learned.seconds / 60).toFixed(1)
    const figures = [
      before.toFixed(2),
      after.toFixed(2),
      gain.toFixed(2),
      p.toExponential(0),
      age,
      worst.toExponential(0),
    ]
    console.log(`| ${[name, ...figures, minutes, holds ? 'yes' : 'NO'].join(' | ')} |`)
    const rewards = learned.steps.map(({ values }) => values['reward'] ?? 0)
    curves.push(
      `${name.padEnd(8)} ${rewards.map((reward) => '▁▂▃▄▅▆▇█'[Math.min(7, Math.floor(reward * 8))]).join('')}`,
    )
  }
}
console.log(`\nReward of each step's rollouts, ▁ 0 to █ 1:\n${curves.join('\n')}\n`)

/** Each of these trainers has to stop in its first step, or with the second version. */
for (const name of [
  'shifted_logprobs_and_trained_tool_results_stop_it_in_the_first_step',
  'versions_that_are_off_by_one_stop_it_as_soon_as_there_are_two',
]) {
  const python = join(cache, 'venv/bin/python')
  const ran = spawnSync(python, ['-B', join(root, 'test/real/loop_test.py'), `Loop.test_${name}`], { encoding: 'utf8' })
  allHold &&= ran.status === 0
  console.log(`damaged rows: ${name.replaceAll('_', ' ')}: ${ran.status === 0 ? 'yes' : 'NO'}`)
}
process.exitCode = allHold ? 0 : 1
