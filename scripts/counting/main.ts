/** The scale of the house: `scripts/house --help`. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BaselineError, baselineFile, compare, lowered, raised, readBaseline } from './baseline.ts'
import { type Count, countsOf } from './counts.ts'
import { surfaceFile } from './surface-file.ts'

const help = `scripts/house                    the table of counts: each with its limit and its target
scripts/house --list COUNT       what makes one of them
scripts/house --check            red where a count is over its limit, or the surface is not as committed
scripts/house --raise "WHY"      writes a line with amount and reason for each count that is over its limit
scripts/house --lower            takes over counts that fell
scripts/house surface            writes the public surface to ${surfaceFile}
scripts/house walk SCENARIO      counts the files of src in which a function ran: call, run; --files names them

--root DIR counts another tree; limits are in ${baselineFile}.
`

const own = join(import.meta.dirname, '../..')

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'string' },
    files: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    raise: { type: 'string' },
    lower: { type: 'boolean', default: false },
    root: { type: 'string', default: own },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const print = (text: string): void => void process.stdout.write(`${text}\n`)

function fail(text: string): never {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}

const { root } = values
const baselinePath = join(root, baselineFile)
const baselineText = existsSync(baselinePath) ? readFileSync(baselinePath, 'utf8') : ''

try {
  const [verb, name = ''] = positionals
  if (values.help) print(help)
  else if (verb === 'surface') await writeSurface()
  else if (verb === 'walk') await walk(name)
  else if (verb !== undefined) fail(`scripts/house has no ${verb}.\n\n${help}`)
  else if (values.check) await check()
  else if (values.list !== undefined) list(values.list)
  else if (values.lower) writeFileSync(baselinePath, lowered(countsOf(root), readBaseline(baselineText)))
  else if (values.raise !== undefined) raise(values.raise.trim())
  else table(countsOf(root))
} catch (error) {
  if (error instanceof BaselineError) fail(`house: ${error.message}`)
  throw error
}

function raise(why: string): void {
  if (why === '') fail('house: --raise needs a reason.')
  writeFileSync(baselinePath, raised(countsOf(root), readBaseline(baselineText), why))
}

function table(counts: readonly Count[]): void {
  const baseline = readBaseline(baselineText)
  const rows = counts.map(({ key, value, target, says }) => {
    const known = baseline.get(key)
    const limit = known === undefined ? '' : [known.base, ...known.raises.map(({ amount }) => amount)].join('+')
    return [key, String(value), limit, target === null ? '' : String(target), says]
  })
  for (const [key = '', value = '', limit = '', target = '', says = ''] of [
    ['count', 'now', 'limit', 'target', 'what is counted'],
    ...rows,
  ]) {
    print(`${key.padEnd(26)}${value.padStart(8)}${limit.padStart(14)}${target.padStart(8)}  ${says}`)
  }
}

function list(key: string): void {
  const counts = countsOf(root)
  const found = counts.find((count) => count.key === key)
  if (found === undefined) fail(`house: there is no count ${key}, but ${counts.map((one) => one.key).join(', ')}`)
  for (const { amount, note } of found.parts.toSorted((a, b) => b.amount - a.amount)) {
    print(amount === 1 ? note : `${String(amount).padStart(8)}  ${note}`)
  }
}

async function check(): Promise<void> {
  const { risen, fallen } = compare(countsOf(root), readBaseline(baselineText), countsBefore)
  const surface = root === own ? await surfaceDrift() : null
  if (fallen.length > 0) print(`house: fell, scripts/house --lower takes it over: ${fallen.join(', ')}`)
  if (surface !== null) process.stderr.write(`house: ${surface}\n`)
  for (const paragraph of risen) process.stderr.write(`house: ${paragraph}\n`)
  if (risen.length > 0) {
    const how = `take as much away elsewhere, or say why it rises: scripts/house --raise "why" writes it to ${baselineFile}`
    process.stderr.write(`house: Fix: ${how}\n`)
  }
  if (risen.length > 0 || surface !== null) process.exitCode = 1
}

/** Counts of the last commits that wrote the baseline. */
function* countsBefore(): Generator<readonly Count[]> {
  const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: root, maxBuffer: 1 << 30 })
  const commits = git('log', '-3', '--format=%H', '--', baselineFile).stdout?.toString().trim().split('\n') ?? []
  for (const commit of commits.filter((one) => one !== '')) {
    const { status, stdout } = git('archive', commit)
    if (status !== 0) continue
    const directory = mkdtempSync(join(tmpdir(), 'paddock-house-'))
    try {
      spawnSync('tar', ['-x', '-C', directory], { input: stdout })
      yield countsOf(directory)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

async function surfaceDrift(): Promise<string | null> {
  const { surfaceText } = await import('./surface.ts')
  const path = join(own, surfaceFile)
  const committed = new Set((existsSync(path) ? readFileSync(path, 'utf8') : '').split('\n'))
  const now = new Set((await surfaceText()).split('\n'))
  const came = [...now].filter((line) => !committed.has(line)).map((line) => `    + ${line}`)
  const left = [...committed].filter((line) => !now.has(line)).map((line) => `    - ${line}`)
  if (came.length + left.length === 0) return null
  const how = `Fix: run scripts/house surface and commit ${surfaceFile}`
  return [`the public surface is not as it is committed:`, ...came, ...left, `  ${how}`].join('\n')
}

async function writeSurface(): Promise<void> {
  const { surfaceText } = await import('./surface.ts')
  writeFileSync(join(own, surfaceFile), await surfaceText())
}

async function walk(name: string): Promise<void> {
  const { scenarios, walkReport } = await import('./walk.ts')
  if (!Object.hasOwn(scenarios, name)) fail(`house: walk takes one of ${Object.keys(scenarios).join(', ')}.`)
  print(await walkReport(name, values.files))
}
