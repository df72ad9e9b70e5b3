/**
 * `npm run learn:long`: SmolLM2-135M learns `repeat` (examples/train/repeat) behind a real vLLM, whose weights are loaded
 * anew after each of its steps. Needs what `scripts/real-up` sets up. Prints a table and draws `docs/guides/repeat.svg`;
 * exit 1 where a line of it does not hold. `--smoke` draws nothing, and says nothing of what holds. What each step says goes to standard error.
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { repeat, learn, openClassroom } from '../scripts/learn.ts'
import { picture } from '../scripts/learn-picture.ts'
import { readFlags } from './flags.ts'

const { steps, smoke } = readFlags({ steps: 25 }, { steps: 1 })
const root = fileURLToPath(new URL('..', import.meta.url))
const cache = execFileSync('sh', [join(root, 'scripts/real-up')], { encoding: 'utf8' }).trim()
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()

const [lag, seed] = [0, 1]
const data = await mkdtemp(join(tmpdir(), 'paddock-learn-'))
await using room = await openClassroom(cache, repeat)
const order = { name: repeat.name, data, seed, steps, lag, control: false }
const learned = await learn(room, order, (line) => console.error(line))
await rm(data, { recursive: true })

const { before, after, p, tasks } = learned
const oldest = Math.max(...learned.steps.map(({ values }) => values['age'] ?? 0))
const compared = learned.steps.filter(({ mismatch }) => mismatch.max > 0)
const worst = Math.max(...compared.map(({ mismatch }) => mismatch.p99))
const lines = [
  [`start, ${tasks} held-out tasks`, before.toFixed(3), '0.15 to 0.5', before >= 0.15 && before <= 0.5],
  ['end, the same tasks', after.toFixed(3), '', true],
  ['gain', (after - before).toFixed(3), 'at least 0.3', after - before >= 0.3],
  ['McNemar p, exact, two-sided', p.toExponential(0), 'below 0.01', p < 0.01],
  ['oldest row that trained, versions', String(oldest), `at most ${lag}`, oldest <= lag],
  ['mismatch, worst p99 of a step', worst.toExponential(0), 'at most 1e-3', worst <= 1e-3],
  [
    'steps with rows of the live weights',
    `${compared.length} of ${steps}`,
    'more than half',
    compared.length > steps / 2,
  ],
] as const

console.log(`commit ${commit}; SmolLM2-135M, its last 6 of 30 layers train; ${steps} steps of 4 groups of 4`)
console.log(`${(learned.seconds / 60).toFixed(1)} minutes, examinations with them\n`)
console.log('| what | measured | has to be | holds |\n|---|---|---|---|')
for (const [what, measured, wanted, holds] of lines) {
  console.log(`| ${[what, measured, wanted, holds ? 'yes' : 'NO'].join(' | ')} |`)
}
console.log(
  '\n| step | reward | oldest row | tokens | clipped | mismatch kl | p99 | max |\n|---|---|---|---|---|---|---|---|',
)
for (const { step, values, mismatch } of learned.steps) {
  const { reward = Number.NaN, age = 0, tokens = 0, clipped = 0 } = values
  const apart =
    mismatch.max > 0 ? [mismatch.kl, mismatch.p99, mismatch.max].map((it) => it.toExponential(0)) : ['', '', '']
  console.log(`| ${[step, reward.toFixed(2), age, tokens, clipped.toFixed(2), ...apart].join(' | ')} |`)
}
const drawn = picture(repeat.name, learned)
if (!smoke) {
  await writeFile(join(root, 'docs/guides/repeat.svg'), drawn)
  process.exitCode = lines.every(([, , , holds]) => holds) ? 0 : 1
}
