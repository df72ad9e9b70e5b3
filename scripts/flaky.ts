/**
 * Runs test files repeatedly on a machine that busy loops keep busy, and prints how often each was red:
 *
 *     scripts/flaky --ten                  the files of test/flaky.json
 *     scripts/flaky FILE...                these
 *       --times N     runs of each file (20)
 *       --busy K      busy loops, each of which wants a core (2)
 *       --minutes M   starts no run after this time (300)
 *       --each M      a longer run is stopped and counts as red (15)
 *       --fresh       drops the results of earlier calls
 *
 * Each round runs every file once. Results are saved after each run, by commit and number of loops, so repeating the call
 * continues it. Exit 0: every run was green; 1: at least one was red; 3: time ran out before all runs.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

interface Run {
  readonly file: string
  readonly green: boolean
  readonly seconds: number
}

class Misuse extends Error {}

const list = 'test/flaky.json'
const children = new Set<ChildProcess>()
let interrupted = false

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ten: { type: 'boolean', default: false },
      times: { type: 'string', default: '20' },
      busy: { type: 'string', default: '2' },
      minutes: { type: 'string', default: '300' },
      each: { type: 'string', default: '15' },
      fresh: { type: 'boolean', default: false },
    },
  })
  const number = (name: 'times' | 'busy' | 'minutes' | 'each', least: number): number => {
    const value = Number(values[name])
    if (!(value >= least)) throw new Misuse(`--${name} ${values[name]} is not a number from ${least}.`)
    return value
  }
  const [times, busy, minutes, each] = [number('times', 1), number('busy', 0), number('minutes', 0), number('each', 0)]
  const named = values.ten ? Object.keys(JSON.parse(readFileSync(list, 'utf8')) as Record<string, string>) : []
  const files = [...named, ...positionals]
  if (files.length === 0) throw new Misuse('No file is named. Fix: scripts/flaky --ten, or scripts/flaky FILE...')
  const missing = files.find((file) => !existsSync(file))
  if (missing !== undefined) throw new Misuse(`There is no file ${missing}.`)

  const kept = keptFile(busy)
  if (values.fresh) rmSync(kept, { force: true })
  const runs = existsSync(kept) ? readFileSync(kept, 'utf8').trim().split('\n').map(parseRun) : []
  const of = (file: string): readonly Run[] => runs.filter((run) => run.file === file)
  const until = performance.now() + minutes * 60_000
  console.log(`${files.length} files, ${times} times each, with ${busy} busy loops; results in ${kept}`)
  for (let at = 0; at < busy; at += 1) loop()
  try {
    for (let round = 1; round <= times && !interrupted; round += 1) {
      for (const file of files) {
        if (of(file).length >= round) continue
        if (interrupted || performance.now() > until) break
        const run = await runOnce(file, each * 60_000)
        if (interrupted) break
        runs.push(run)
        appendFileSync(kept, `${JSON.stringify(run)}\n`)
        console.log(`${String(round).padStart(3)}/${times} ${run.green ? 'green' : 'RED  '} ${seconds(run)} ${file}`)
      }
    }
  } finally {
    await Promise.all([...children].map(end))
  }
  const rows = files.map((file) => ({ file, runs: of(file), red: of(file).filter(({ green }) => !green).length }))
  console.log('\n| file | runs | red | longest |\n|---|---|---|---|')
  for (const { file, runs: own, red } of rows) {
    console.log(`| ${file} | ${own.length} | ${red} | ${Math.max(0, ...own.map((run) => run.seconds)).toFixed(0)} s |`)
  }
  const red = rows.reduce((sum, row) => sum + row.red, 0)
  console.log(`\n${rows.reduce((sum, row) => sum + row.runs.length, 0)} runs, ${red} red`)
  if (red > 0) return 1
  return rows.every((row) => row.runs.length >= times) ? 0 : 3
}

/** The results file for the current sources. */
function keptFile(busy: number): string {
  const folder = 'node_modules/.cache/flaky'
  mkdirSync(folder, { recursive: true })
  const git = (...args: readonly string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '-changed'
  return join(folder, `${git('rev-parse', '--short', 'HEAD')}${changed}-busy-${busy}.jsonl`)
}

function parseRun(line: string): Run {
  return JSON.parse(line) as Run
}

/** Starts a busy loop. It ends when its parent is gone, even after SIGKILL. */
function loop(): void {
  children.add(spawn(process.execPath, ['-e', 'const { ppid } = process; while (process.ppid === ppid);']))
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  if (child.kill('SIGKILL')) await ended
}

/** Runs one file in its own vitest and prints the output of a red run. */
async function runOnce(file: string, mostMs: number): Promise<Run> {
  const from = performance.now()
  const config = /^test\/(torture|real|world)\//.test(file) ? ['--config', 'vitest.lane.config.ts'] : []
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', file, ...config], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  const said: Buffer[] = []
  for (const output of [child.stdout, child.stderr]) output.on('data', (chunk: Buffer) => said.push(chunk))
  const timers = [
    setTimeout(() => child.kill('SIGINT'), mostMs),
    setTimeout(() => child.kill('SIGKILL'), mostMs + 60_000),
  ]
  const [code] = await once(child, 'close')
  for (const timer of timers) clearTimeout(timer)
  children.delete(child)
  if (code !== 0 && !interrupted) process.stdout.write(Buffer.concat(said).subarray(-20_000))
  return { file, green: code === 0, seconds: (performance.now() - from) / 1000 }
}

function seconds(run: Run): string {
  return `${run.seconds.toFixed(1).padStart(6)} s`
}

const interrupt = (): void => {
  interrupted = true
  for (const child of children) child.kill('SIGINT')
}
process.on('SIGINT', interrupt).on('SIGTERM', interrupt)

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof Misuse)) throw error
  console.error(`flaky: ${error.message}`)
  process.exitCode = 2
}
