/**
 * Runs the test files of a lane in the order that its `lane.json` gives, until its time is up:
 *
 *     node scripts/lane.ts torture            what CI runs
 *     node scripts/lane.ts torture --long     every file at full size (TORTURE=long), without a time limit
 *       --table FILE   also keeps the closing table there        --minutes N   another limit than lane.json's
 *       --at-most N    no longer than this, whatever the limit is
 *       --turns        what changed goes first, the others take turns (CI); --changed-since REF: since there, not within a day
 *       --strict       a skipped test that test/skips.json does not allow is a failure
 *     node scripts/lane.ts --order            prints the names of all lanes, in the order in which CI begins them
 *
 * One vitest runs at a time, or as many as `atOnce` says; a file that `alone` names runs beside no other. A vitest takes one
 * file, or as many as `together` says. Where several run, what each prints is shown whole when it ends.
 *
 * A file of the folder that `lane.json` does not name, and a name without a file, is an error before anything runs. When the
 * limit is reached nothing further starts: the rest is listed as `not run (time)`, which is not a failure. A vitest that is
 * still running six minutes after the limit (`--grace N`) is stopped, and that is a failure. Exit 0: nothing failed.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { keepSection } from './keep-section.ts'
import { changedFiles, covers, inTurns, turnOf } from './lane-order.ts'
import { type Lane, laneNames, laneOf, Misuse } from './lanes.ts'

type Row = { readonly files: readonly string[]; readonly result: string; readonly seconds: number }

const beside = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** The report of files whose vitest ended without one. */
const noReport = (files: readonly string[]): string =>
  JSON.stringify({
    numPassedTests: 0,
    numFailedTests: 0,
    numPendingTests: 0,
    testResults: [{ name: files.join(', '), status: 'failed', assertionResults: [] }],
  })

async function main(): Promise<number> {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      long: { type: 'boolean', default: false },
      table: { type: 'string' },
      minutes: { type: 'string' },
      'at-most': { type: 'string' },
      grace: { type: 'string', default: '6' },
      turns: { type: 'boolean', default: false },
      'changed-since': { type: 'string' },
      strict: { type: 'boolean', default: false },
      order: { type: 'boolean', default: false },
    },
  })
  const changes = (): ReadonlySet<string> => changedFiles('.', options['changed-since'])
  if (options.order) {
    const changed = changes()
    const isFirst = (lane: string): boolean => laneOf(lane).files.some((file) => covers(file, changed))
    console.log(inTurns(laneNames(), isFirst, turnOf()).join('\n'))
    return 0
  }
  const [name] = positionals
  if (name === undefined || positionals.length > 1) {
    throw new Misuse(
      'Usage: node scripts/lane.ts NAME [--long] [--minutes N] [--at-most N] [--grace N] [--table FILE] [--turns] [--changed-since REF] [--strict], or --order',
    )
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
  const listed = options.long ? [...lane.files, ...lane.long] : lane.files
  const changed = options.turns ? changes() : undefined
  const files = changed === undefined ? listed : inTurns(listed, (file) => covers(file, changed), turnOf())
  const began = performance.now()
  const passed = (): number => (performance.now() - began) / 1000
  const reports = mkdtempSync(join(tmpdir(), 'paddock-lane-'))
  const shown = (file: string): string => relative(lane.config === 'vitest.config.ts' ? '.' : join('test', name), file)
  const rows: Row[] = []
  const written: string[] = []
  let failed = false
  const run = async (at: number, some: readonly string[]): Promise<void> => {
    const report = join(reports, `${at}.json`)
    const from = passed()
    const result = await runFiles({
      paths: some,
      config: lane.config,
      report,
      long: options.long,
      atMost: limit + grace * 60 - from,
      printed: lane.atOnce > 1 ? join(reports, `${at}.txt`) : null,
    })
    if (!existsSync(report)) writeFileSync(report, noReport(some))
    written.push(report)
    if (result !== 'passed') failed = true
    rows[at] = {
      files: some.map(shown),
      result: `${result}: ${closingLine([report], { tell: false, strict: false }).stdout.split('\n', 1).join('')}`,
      seconds: passed() - from,
    }
  }
  const running = new Set<Promise<void>>()
  try {
    for (const [at, some] of batchesOf(files, lane).entries()) {
      const isAlone = some.some((file) => lane.alone.includes(file))
      while (running.size >= (isAlone ? 1 : lane.atOnce)) await Promise.race(running)
      if (interrupted) break
      if (passed() >= limit) {
        rows[at] = { files: some.map(shown), result: 'not run (time)', seconds: 0 }
        continue
      }
      const one = run(at, some).finally(() => running.delete(one))
      running.add(one)
      if (isAlone) await one
    }
    await Promise.all(running)
    const table = tableOf(name, options.long, rows, passed())
    process.stdout.write(`\n${table}`)
    if (options.table !== undefined) keepSection(options.table, name, table)
    const closing = closingLine(written, { tell: true, strict: options.strict })
    if (closing.status !== 0) failed = true
    process.stdout.write(closing.stdout)
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

/** What each vitest runs: as many files as the lane says, one that is to be alone by itself. */
function batchesOf(files: readonly string[], { together, alone }: Lane): readonly (readonly string[])[] {
  const batches: string[][] = []
  for (const file of files) {
    const last = batches.at(-1)
    const fits =
      last !== undefined && last.length < together && ![file, last[0] ?? ''].some((one) => alone.includes(one))
    if (fits) last.push(file)
    else batches.push([file])
  }
  return batches
}

/** Some files in a vitest of their own, so that a crash is not the end of all. */
async function runFiles({
  paths,
  config,
  report,
  long,
  atMost,
  printed,
}: {
  readonly paths: readonly string[]
  readonly config: string
  readonly report: string
  readonly long: boolean
  readonly atMost: number
  /** Where it prints to until it ends, for files that run beside others. Null: to ours, at once. */
  readonly printed: string | null
}): Promise<string> {
  const vitest = beside('../node_modules/vitest/vitest.mjs')
  const args = [
    vitest,
    'run',
    ...paths.map((path) => resolve(path)),
    '--config',
    config,
    '--reporter=default',
    '--reporter=json',
  ]
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

/** The closing lines of reports. `tell`: also to the file that collects failures. */
function closingLine(
  reports: readonly string[],
  { tell, strict }: { readonly tell: boolean; readonly strict: boolean },
): { readonly stdout: string; readonly status: number | null } {
  const { PADDOCK_FAILURES: told, ...others } = process.env
  const env = tell && told !== undefined ? { ...others, PADDOCK_FAILURES: told } : others
  const args = [beside('closing-line.mjs'), ...(strict ? ['--strict'] : []), ...reports]
  return spawnSync(process.execPath, args, { encoding: 'utf8', env })
}

function tableOf(name: string, long: boolean, rows: readonly Row[], seconds: number): string {
  const lines = rows.map(({ files, result, seconds: took }) => {
    // What did not run is named, file by file.
    const [first = '', ...others] = files
    const named = others.length === 0 ? first : took === 0 ? files.join(', ') : `${first} and ${others.length} more`
    return `| ${named} | ${result.trim()} | ${(took / 60).toFixed(1)} |\n`
  })
  return `| ${name}${long ? ', full sizes' : ''} | result | minutes |\n|---|---|---|\n${lines.join('')}| all | | ${(seconds / 60).toFixed(1)} |\n\n`
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof Misuse)) throw error
  console.error(error.message)
  process.exitCode = 2
}
