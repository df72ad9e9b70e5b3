/** Runs every bench of `bench/run.ts` at its smoke size. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { benches } from '../../bench/benches.ts'
import { benchRun, smokeBenches } from '../lab/benches.ts'

const folder = fileURLToPath(new URL('../../bench/', import.meta.url))

it('lists every bench', () => {
  const programs = readdirSync(folder).filter((name) => name.endsWith('.ts') && readsFlags(name))
  expect(programs.map((name) => name.slice(0, -3)).toSorted()).toEqual(benches.map(({ name }) => name).toSorted())
})

it.each([
  [['proxi'], 'USAGE: node bench/run.ts: there is no bench proxi. Fix: use proxy.'],
  [['--smokes'], 'USAGE: node bench/run.ts: there is no option --smokes. Fix: use --smoke.'],
  [['--under', 'x'], 'USAGE: node bench/run.ts: --under x is no number of minutes. Fix: use --under 3.'],
  [['--', '--rounds', '2'], 'USAGE: node bench/run.ts: options after -- need one bench. Fix: use NAME -- OPTIONS.'],
])('%j is refused before anything runs, and the fix is named', async (args, error) => {
  expect(await benchRun(...args)).toEqual({ code: 2, out: '', err: `${error}\n` })
})

it.each([
  [['--round', '2'], 'USAGE: node bench/queue.ts has no option --round. Fix: use --rounds.'],
  [['--rounds'], 'USAGE: node bench/queue.ts got --rounds, which needs a value. Fix: write --rounds VALUE.'],
  [['--rounds', 'two'], 'USAGE: node bench/queue.ts got --rounds two. Fix: give a number above 0.'],
  [['2'], 'USAGE: node bench/queue.ts takes no "2". Fix: the options are --seconds, --rounds, --backlog, --smoke.'],
])('a bench refuses %j, and the fix is named', async (args, error) => {
  const { code, err } = await benchRun('queue', '--', ...args)
  expect(code).toBe(1)
  expect(err).toContain(error)
})

smokeBenches('world')

/** Benches have sizes; the files that they share have none. */
function readsFlags(name: string): boolean {
  return readFileSync(`${folder}${name}`, 'utf8').includes("from './flags.ts'")
}
