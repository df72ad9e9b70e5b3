/**
 * `rules.math` beside the graders that the field publishes, over the labelled pairs of `math/pairs.txt`: how many different
 * answers each takes for right (wrong positives), and how many right ones it misses.
 *
 *   node bench/math.ts [--misses] [--first N]     first: no more than so many pairs
 *
 * `math_verify` comes from its package; prm800k's grader (`grade_answer`) and verl's (`math_reward`) from verl's wheel, of which
 * nothing else is installed. They live in a virtual environment under `.paddock/`, made at the first run; it needs `python3`
 * and a package index.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { math } from '../src/reward/index.ts'
import { readFlags } from './flags.ts'
import { labelledPairs, type Pair } from './math/pairs.ts'

const versions = { verl: '0.9.1', 'math-verify': '0.9.0' }
/** What the graders are made of, so that another day gives the same table. */
const pinned = [
  `math-verify==${versions['math-verify']}`,
  'latex2sympy2_extended==1.11.0',
  'sympy==1.14.0',
  'antlr4-python3-runtime==4.13.2',
  'pylatexenc==2.11',
]
const place = fileURLToPath(new URL('../.paddock/bench-math/', import.meta.url))

const { misses, first } = readFlags({ misses: false, first: Infinity }, { first: 20 })
const pairs = labelledPairs().slice(0, first)
// All graders get what stands in the box.
const asked = pairs.map(({ gold, answer }) => ({ gold, answer: boxOf(answer) }))
const own = pairs.map(({ gold, answer }) => math(gold)(answer).value === 1)
const theirs = published()
const graders = { 'rules.math': own, ...theirs }
console.log(table())
if (misses) {
  for (const [name, says] of Object.entries(graders)) {
    for (const [i, pair] of pairs.entries()) {
      if (says[i] !== pair.equal) console.log(`${name}: ${pair.gold} ${pair.equal ? 'misses' : 'takes'} ${pair.answer}`)
    }
  }
}

function boxOf(answer: string): string {
  return /^(?:.*)\\boxed\{(.*)\}[^}]*$/s.exec(answer)?.[1] ?? answer
}

function published(): Readonly<Record<string, readonly boolean[]>> {
  const python = `${place}venv/bin/python`
  if (!existsSync(`${place}verl/verl/utils/reward_score`)) install(python)
  const ran = spawnSync(python, [fileURLToPath(new URL('math/graders.py', import.meta.url)), `${place}verl`], {
    input: asked.map((pair) => JSON.stringify(pair)).join('\n'),
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  const said = ran.stdout
    .split('\n')
    .filter((line) => line.startsWith('{"math_verify"'))
    .map((line) => JSON.parse(line) as Readonly<Record<string, boolean>>)
  if (said.length !== pairs.length)
    throw new Error(`the graders answered ${said.length} of ${pairs.length}: ${ran.stderr}`)
  return Object.fromEntries(
    Object.keys(said[0] ?? {}).map((name) => [name, said.map((answers) => answers[name] === true)]),
  )
}

function install(python: string): void {
  const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { stdio: 'inherit' })
  run('python3', '-m', 'venv', `${place}venv`)
  run(python, '-m', 'pip', 'install', '--quiet', ...pinned)
  run(python, '-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', place, `verl==${versions.verl}`)
  run(python, '-m', 'zipfile', '-e', `${place}verl-${versions.verl}-py3-none-any.whl`, `${place}verl`)
}

function table(): string {
  const different = pairs.filter(({ equal }) => !equal).length
  const names = Object.keys(graders)
  const row = (first: string, cells: readonly string[]) =>
    [first.padEnd(32), ...cells.map((cell) => cell.padStart(13))].join('')
  const kinds = [...new Set(pairs.map(({ kind }) => kind))]
  return [
    `${pairs.length} pairs: ${pairs.length - different} mean the same, ${different} do not`,
    `math_verify ${versions['math-verify']}; prm800k (grade_answer) and verl (math_reward) from verl ${versions.verl}`,
    'each cell: wrong positives / misses',
    row('', names),
    ...kinds.map((kind) =>
      row(
        kind,
        names.map((name) => cell(name, (pair) => pair.kind === kind)),
      ),
    ),
    row(
      'all',
      names.map((name) => cell(name, () => true)),
    ),
  ].join('\n')
}

function cell(name: string, among: (pair: Pair) => boolean): string {
  const says = graders[name as keyof typeof graders] ?? []
  const wrong = pairs.filter((pair, i) => among(pair) && says[i] === true && !pair.equal).length
  const missed = pairs.filter((pair, i) => among(pair) && says[i] === false && pair.equal).length
  return `${wrong} / ${missed}`
}
