/**
 * `rules.math` beside the graders that the field publishes: how many different answers each takes for right (wrong positives),
 * and how many right ones it misses. Three sets: the labelled pairs of `math/pairs.txt`; 3,000 that `math/generate.py` makes and
 * sympy labels, half of them wrong by one change; and the answers of a published set (CHAMP), rewritten by `math/rewrite.py`.
 *
 *   node bench/math.ts [--misses] [--first N] [--golds FILE]     first: no more than so many pairs of each set
 *
 * `--golds` takes a JSON list of other golds to rewrite. `math_verify` comes from its package; prm800k's grader (`grade_answer`)
 * and verl's (`math_reward`) from verl's wheel, of which nothing else is installed. They live in a virtual environment under
 * `.paddock/`, made at the first run; it needs `python3` and a package index.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { math } from '../src/reward/rule/math/index.ts'
import { readFlags } from './flags.ts'
import { labelledPairs, type Pair } from './math/pairs.ts'

const versions = { verl: '0.9.1', 'math-verify': '0.9.0', 'champ-dataset': '1.0.0' }
/** What the graders are made of, so that another day gives the same table. */
const pinned = [
  `math-verify==${versions['math-verify']}`,
  'latex2sympy2_extended==1.11.0',
  'sympy==1.14.0',
  'antlr4-python3-runtime==4.13.2',
  'pylatexenc==2.11',
]
const place = fileURLToPath(new URL('../.paddock/bench-math/', import.meta.url))

const python = `${place}venv/bin/python`
const beside = (name: string) => fileURLToPath(new URL(`math/${name}`, import.meta.url))

interface Judged extends Pair {
  readonly says: Readonly<Record<string, boolean>>
}

const { misses, first, golds } = readFlags({ misses: false, first: Infinity, golds: '' }, { first: 20 })
if (!existsSync(`${place}champ/champ_dataset`)) install()
const sets = await Promise.all(
  [
    { name: 'labelled by hand', pairs: labelledPairs() },
    { name: 'labelled by sympy', pairs: await made('generate.py', [String(Math.min(first, 3000))], '') },
    {
      name: 'published golds',
      pairs: await made('rewrite.py', [], golds === '' ? champ() : readFileSync(golds, 'utf8')),
    },
  ].map(async ({ name, pairs }) => ({ name, judged: await judge(pairs.slice(0, first)) })),
)
for (const { name, judged } of sets) {
  console.log(table(name, judged))
  if (!misses) continue
  for (const pair of judged) {
    for (const [grader, says] of Object.entries(pair.says)) {
      if (says !== pair.equal) console.log(`${grader}: ${pair.gold} ${pair.equal ? 'misses' : 'takes'} ${pair.answer}`)
    }
  }
}

/** Pairs that a script of python writes, one JSON object in a line. */
async function made(script: string, options: readonly string[], input: string): Promise<readonly Pair[]> {
  return lines(await asked(script, options, input)) as readonly Pair[]
}

async function asked(script: string, options: readonly string[], input: string): Promise<string> {
  const running = promisify(execFile)(python, [beside(script), ...options], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  running.child.stdin?.end(input)
  return (await running).stdout
}

function lines(text: string): readonly unknown[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as unknown)
}

function champ(): string {
  const text = readFileSync(`${place}champ/champ_dataset/dataset_files/v0.json`, 'utf8')
  const { problems } = JSON.parse(text) as { readonly problems: Readonly<Record<string, { readonly _answer: string }>> }
  return JSON.stringify(Object.values(problems).map(({ _answer }) => _answer))
}

/** All graders get what stands in the box. */
async function judge(pairs: readonly Pair[]): Promise<readonly Judged[]> {
  const own = pairs.map(({ gold, answer }) => math(gold)(answer).value === 1)
  const input = pairs.map(({ gold, answer }) => JSON.stringify({ gold, answer: boxOf(answer) })).join('\n')
  const said = lines(await asked('graders.py', [`${place}verl`], input)) as readonly Readonly<Record<string, boolean>>[]
  if (said.length !== pairs.length) throw new Error(`the graders answered ${said.length} of ${pairs.length}`)
  return pairs.map((pair, i) => ({ ...pair, says: { 'rules.math': own[i] === true, ...said[i] } }))
}

function boxOf(answer: string): string {
  return /^(?:.*)\\boxed\{(.*)\}[^}]*$/s.exec(answer)?.[1] ?? answer
}

function install(): void {
  const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { stdio: 'inherit' })
  run('python3', '-m', 'venv', `${place}venv`)
  run(python, '-m', 'pip', 'install', '--quiet', ...pinned)
  for (const [name, version] of [
    ['verl', versions.verl] as const,
    ['champ_dataset', versions['champ-dataset']] as const,
  ]) {
    run(python, '-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', place, `${name}==${version}`)
    run(python, '-m', 'zipfile', '-e', `${place}${name}-${version}-py3-none-any.whl`, `${place}${name.split('_')[0]}`)
  }
}

function table(title: string, judged: readonly Judged[]): string {
  const names = Object.keys(judged[0]?.says ?? {})
  const row = (first: string, cells: readonly string[]) =>
    [first.padEnd(36), ...cells.map((cell) => cell.padStart(13))].join('')
  const kinds = [...new Set(judged.map(({ kind }) => kind))]
  const different = judged.filter(({ equal }) => !equal).length
  return [
    `${title}: ${judged.length} pairs, ${judged.length - different} mean the same, ${different} do not`,
    'each cell: wrong positives / misses',
    row('', names),
    ...kinds.map((kind) =>
      row(
        kind.slice(0, 35),
        names.map((name) =>
          cell(
            name,
            judged.filter((pair) => pair.kind === kind),
          ),
        ),
      ),
    ),
    row(
      'all',
      names.map((name) => cell(name, judged)),
    ),
    '',
  ].join('\n')
}

function cell(name: string, judged: readonly Judged[]): string {
  const wrong = judged.filter(({ says, equal }) => says[name] === true && !equal).length
  const missed = judged.filter(({ says, equal }) => says[name] !== true && equal).length
  return `${wrong} / ${missed}`
}
