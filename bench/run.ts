/**
 * Runs benches and keeps their tables in `bench/RESULTS.md`. Each figure is shown beside a baseline of the same run, so
 * read the ratios.
 *
 *   node bench/run.ts                         every bench
 *   node bench/run.ts proxy store             these
 *   node bench/run.ts --under 3               those that take less than 3 minutes on two quiet cores
 *   node bench/run.ts proxy --smoke           the whole way with the least amount; no table is kept
 *   node bench/run.ts proxy -- --rounds 5     with options of the bench itself
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { nearest } from '../src/config/nearest.ts'
import { benches, programOf } from './benches.ts'

const results = fileURLToPath(new URL('RESULTS.md', import.meta.url))
const head =
  '# Last results\n\nWritten by `node bench/run.ts`. The machine is shared and noisy: compare the ratios, not the times.\n'
const options = { smoke: { type: 'boolean' }, under: { type: 'string' } } as const

const given = process.argv.slice(2)
const end = given.includes('--') ? given.indexOf('--') : given.length
const { values, tokens } = parseArgs({
  args: given.slice(0, end),
  options,
  strict: false,
  allowPositionals: true,
  tokens: true,
})
const asked: string[] = []
for (const token of tokens) {
  if (token.kind === 'positional') asked.push(token.value)
  if (token.kind === 'option' && !(token.name in options)) {
    misuse(`there is no option ${token.rawName}`, token.name, Object.keys(options), '--')
  }
}
for (const name of asked) {
  const names = benches.map((bench) => bench.name)
  if (!names.includes(name)) misuse(`there is no bench ${name}`, name, names, '')
}
const smoke = values.smoke === true
const under = values.under === undefined ? Infinity : Number(String(values.under))
if (!(under > 0)) misuse(`--under ${String(values.under)} is no number of minutes`, '', ['under 3'], '--')
const flags = [...given.slice(end + 1), ...(smoke ? ['--smoke'] : [])]
const wanted = benches.filter(({ name, minutes }) => (asked.length === 0 || asked.includes(name)) && minutes < under)
if (flags.length > (smoke ? 1 : 0) && wanted.length > 1) {
  misuse('options after -- need one bench', '', ['NAME -- OPTIONS'], '')
}

for (const bench of wanted) {
  console.log(`\n== ${bench.about}`)
  const ran = spawnSync(process.execPath, [programOf(bench), ...flags], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const table = ran.stdout.trim()
  console.log(table)
  if (ran.status !== 0 || table === '') {
    const how = ran.status === 0 ? 'printed no table' : `ended with exit code ${String(ran.status ?? ran.signal)}`
    console.error(`${bench.name} ${how}; its last table in RESULTS.md stays.`)
    process.exitCode = 1
  } else if (!smoke) keep(bench.name, `Measured ${today()} on ${machine()}.\n\n\`\`\`\n${table}\n\`\`\``)
}

/** Puts one section in its place; the others stay as they are. */
function keep(name: string, text: string): void {
  const sections = existsSync(results) ? readFileSync(results, 'utf8').split(/^(?=## )/m) : []
  const kept = benches.flatMap((bench) => {
    const title = `## ${bench.about}`
    if (bench.name === name) return `${title}\n\n${text}\n`
    const section = sections.find((one) => one.startsWith(`${title}\n`))
    return section === undefined ? [] : `${section.trimEnd()}\n`
  })
  writeFileSync(results, [head, ...kept].join('\n'))
}

function today(): string {
  return new Date().toISOString().slice(0, 10)
}

function machine(): string {
  const [cpu] = cpus()
  return `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), Linux ${release()}, Node ${process.versions.node}`
}

function misuse(what: string, word: string, known: readonly string[], prefix: string): never {
  const near = nearest(word, known)
  const fix = near === null ? known.map((one) => `${prefix}${one}`).join(', ') : `${prefix}${near}`
  console.error(`USAGE: node bench/run.ts: ${what}. Fix: use ${fix}.`)
  process.exit(2)
}
