/**
 * Runs the test files of a lane in the order that its `lane.json` gives, until its time is up:
 *
 *     node scripts/lane.ts torture            what CI runs
 *     node scripts/lane.ts torture --long     every file at full size (TORTURE=long), without a time limit
 *       --table FILE   also keeps the closing table there        --minutes N   another limit than lane.json's
 *       --at-most N    no longer than this, whatever the limit is
 *
 * One file runs at a time, or as many as `atOnce` says; one that `alone` names runs beside no other. Where several run,
 * what a file prints is shown whole when it ends. A file of the folder that `lane.json` does not name, and a name without
 * a file, is an error before anything runs. When the limit is reached no further file starts: the rest is told as
 * `not run (time)`, which is not a failure. A file that is still running six minutes after the limit (`--grace N`) is
 * stopped, and that is one. Exit 0: nothing failed.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { keepSection } from './keep-section.ts'

interface Lane {
  /** Minutes after which no further file starts. */
  readonly limitMinutes: number
  /** Test files of the folder, the most important first. */
  readonly files: readonly string[]
  /** Files that only `--long` runs. */
  readonly long: readonly string[]
  /** How many files run beside each other. */
  readonly atOnce: number
  /** Files that run beside no other. */
  readonly alone: readonly string[]
}

type Row = { readonly file: string; readonly result: string; readonly seconds: number }

const config = 'vitest.lane.config.ts'
const beside = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** What stands for the report of a file whose vitest ended without one. */
const noReport = JSON.stringify({
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  testResults: [{ status: 'failed', assertionResults: [] }],
})

class Misuse extends Error {}

/** The lane of `test/<name>`, each of its test files in exactly one place of the list. */
function laneOf(name: string): Lane {
  const folder = join('test', name)
  const path = join(folder, 'lane.json')
  if (!existsSync(path)) throw new Misuse(`There is no lane ${name}. Fix: write ${path} with limitMinutes and files.`)
  const written: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (typeof written !== 'object' || written === null) throw new Misuse(`${path} is not an object.`)
  const { limitMinutes, files, long = [], atOnce = 1, alone = [], ...others } = written as Record<string, unknown>
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) {
    throw new Misuse(
      `${path} has an unknown key ${unknown}. Fix: the keys are limitMinutes, files, long, atOnce and alone.`,
    )
  }
  if (typeof limitMinutes !== 'number' || !(limitMinutes > 0)) {
    throw new Misuse(`${path}: limitMinutes is not a number above 0.`)
  }
  if (typeof atOnce !== 'number' || !Number.isInteger(atOnce) || atOnce < 1) {
    throw new Misuse(`${path}: atOnce is not a whole number from 1.`)
  }
  if (!isListOfNames(files) || !isListOfNames(long) || !isListOfNames(alone)) {
    throw new Misuse(`${path}: files, long and alone are lists of names.`)
  }
  const named = [...files, ...long]
  for (const file of alone) {
    if (!named.includes(file)) throw new Misuse(`${path}: alone names ${file}, which is in neither files nor long.`)
  }
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.test.ts'))
  for (const file of named) {
    if (!found.includes(file)) throw new Misuse(`${path} names ${file}, which does not exist.`)
    if (named.filter((other) => other === file).length > 1) throw new Misuse(`${path} names ${file} twice.`)
  }
  for (const file of found) {
    if (!named.includes(file)) {
      throw new Misuse(`${join(folder, file)} is not in ${path}. Fix: put it where its importance is.`)
    }
  }
  return { limitMinutes, files, long, atOnce, alone }
}

function isListOfNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}

async function main(): Promise<number> {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      long: { type: 'boolean', default: false },
      table: { type: 'string' },
      minutes: { type: 'string' },
      'at-most': { type: 'string' },
      grace: { type: 'string', default: '6' },
    },
  })
  const [name] = positionals
  if (name === undefined || positionals.length > 1) {
    throw new Misuse('Usage: node scripts/lane.ts NAME [--long] [--minutes N] [--at-most N] [--grace N] [--table FILE]')
  }
  const lane = laneOf(name)
  const minutesOf = (flag: 'minutes' | 'at-most', otherwise: number): number => {
    const given = options[flag]
    const value = given === undefined ? otherwise : Number(given)
    if (!(value >= 0)) throw new Misuse(`--${flag} ${given} is not a number of minutes.`)
    return value
  }
  const minutes = Math.min(minutesOf('minutes', lane.limitMinutes), minutesOf('at-most', Infinity))
  const grace = Number(options.grace)
  if (!(grace >= 0)) throw new Misuse(`--grace ${options.grace} is not a number of minutes.`)
  const limit = options.long ? Infinity : minutes * 60
  const files = options.long ? [...lane.files, ...lane.long] : lane.files
  const began = performance.now()
  const passed = (): number => (performance.now() - began) / 1000
  const reports = mkdtempSync(join(tmpdir(), 'paddock-lane-'))
  const rows: Row[] = []
  const written: string[] = []
  let failed = false
  const run = async (at: number, file: string): Promise<void> => {
    const report = join(reports, `${at}.json`)
    const from = passed()
    const result = await runFile({
      path: join('test', name, file),
      report,
      long: options.long,
      atMost: limit + grace * 60 - from,
      printed: lane.atOnce > 1 ? join(reports, `${at}.txt`) : null,
    })
    if (!existsSync(report)) writeFileSync(report, noReport)
    written.push(report)
    if (result !== 'passed') failed = true
    rows[at] = { file, result: `${result}: ${counts([report], false)}`, seconds: passed() - from }
  }
  const running = new Set<Promise<void>>()
  try {
    for (const [at, file] of files.entries()) {
      const isAlone = lane.alone.includes(file)
      while (running.size >= (isAlone ? 1 : lane.atOnce)) await Promise.race(running)
      if (interrupted) break
      if (passed() >= limit) {
        rows[at] = { file, result: 'not run (time)', seconds: 0 }
        continue
      }
      const one = run(at, file).finally(() => running.delete(one))
      running.add(one)
      if (isAlone) await one
    }
    await Promise.all(running)
    const table = tableOf(name, options.long, rows, passed())
    process.stdout.write(`\n${table}`)
    if (options.table !== undefined) keepSection(options.table, name, table)
    process.stdout.write(counts(written, true))
  } finally {
    rmSync(reports, { recursive: true, force: true })
  }
  return interrupted ? 130 : failed ? 1 : 0
}

let interrupted = false
const children = new Set<ChildProcess>()
process.on('SIGINT', () => {
  interrupted = true
  for (const child of children) child.kill('SIGINT')
})

/** One file in a vitest of its own, so that a crash of one is not the end of all. */
async function runFile({
  path,
  report,
  long,
  atMost,
  printed,
}: {
  readonly path: string
  readonly report: string
  readonly long: boolean
  readonly atMost: number
  /** Where it prints to until it ends, for files that run beside others. Null: to ours, at once. */
  readonly printed: string | null
}): Promise<string> {
  const vitest = beside('../node_modules/vitest/vitest.mjs')
  const args = [vitest, 'run', path, '--config', config, '--reporter=default', '--reporter=json']
  const env = long ? { ...process.env, TORTURE: 'long' } : process.env
  const output = printed === null ? 'inherit' : openSync(printed, 'w')
  const child = spawn(process.execPath, [...args, `--outputFile.json=${report}`], {
    stdio: ['inherit', output, output],
    env,
  })
  children.add(child)
  let stopped = false
  const stop = (signal: NodeJS.Signals) => () => {
    stopped = true
    child.kill(signal)
  }
  const timers = Number.isFinite(atMost)
    ? [setTimeout(stop('SIGINT'), atMost * 1000), setTimeout(stop('SIGKILL'), (atMost + 60) * 1000)]
    : []
  const [code] = await once(child, 'exit')
  for (const timer of timers) clearTimeout(timer)
  children.delete(child)
  if (printed !== null && typeof output === 'number') {
    closeSync(output)
    process.stdout.write(readFileSync(printed))
  }
  if (stopped) return 'stopped (time)'
  return code === 0 ? 'passed' : 'FAILED'
}

/** The closing line of reports. `tell`: also for whoever collects failures. */
function counts(reports: readonly string[], tell: boolean): string {
  const { PADDOCK_FAILURES: told, ...others } = process.env
  const env = tell && told !== undefined ? { ...others, PADDOCK_FAILURES: told } : others
  return spawnSync(process.execPath, [beside('closing-line.mjs'), ...reports], { encoding: 'utf8', env }).stdout
}

function tableOf(name: string, long: boolean, rows: readonly Row[], seconds: number): string {
  const lines = rows.map((row) => `| ${row.file} | ${row.result.trim()} | ${(row.seconds / 60).toFixed(1)} |\n`)
  return `| ${name}${long ? ', full sizes' : ''} | result | minutes |\n|---|---|---|\n${lines.join('')}| all | | ${(seconds / 60).toFixed(1)} |\n\n`
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof Misuse)) throw error
  console.error(error.message)
  process.exitCode = 2
}
