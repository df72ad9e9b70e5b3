/**
 * Pages of the viewer in Debian's Chromium, beside an empty page of the same viewer in the same browser: what the data of a large run and of a long session
 * cost a person who waits for the first rows.
 *
 *   node bench/view.ts [--rollouts 10000] [--turns 1000] [--rounds 7]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { newId } from '../src/core/index.ts'
import { recordRollouts } from '../src/testing/exporter/recorded.ts'
import { openStore } from '../src/trajectory/index.ts'
import { readFlags } from './flags.ts'

const { rollouts, turns, rounds } = readFlags(
  { rollouts: 10_000, turns: 1000, rounds: 7 },
  { rollouts: 20, turns: 4, rounds: 1 },
)
const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
)
if (program === undefined) throw new Error('There is no Chromium. Fix: sh scripts/machine world')

const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-view-'))
const { runId, session } = await record()
const viewer = spawn(
  fileURLToPath(new URL('../paddock', import.meta.url)),
  ['view', directory, '--port', '0', '--json'],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)
const [line] = (await once(createInterface({ input: viewer.stdout }), 'line')) as [string]
const { link, origin } = JSON.parse(line) as { link: string; origin: string }
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(link)
  await page.waitForSelector('table a')
  /** Milliseconds until a part of a page is there, the page loaded from nothing. */
  const timed = async (path: string, selector: string): Promise<number> => {
    const began = performance.now()
    await page.goto(`${origin}${path}`)
    await page.waitForSelector(selector)
    return performance.now() - began
  }
  // The first look reads the run; what a person waits for then stands apart.
  const first = await timed(`/runs/${runId}`, '.cells a')
  const shown: readonly (readonly [string, string, string])[] = [
    ['an empty page', '/nothing', '.failure'],
    ['list of runs', '/', 'table a'],
    [`rollouts of a run of ${rollouts}`, `/runs/${runId}`, '.cells a'],
    ['  filtered by cause', `/runs/${runId}?cause=scored+0`, '.cells a'],
    ['  its groups', `/runs/${runId}?tab=groups`, 'tbody a'],
    ['  its curves', `/runs/${runId}?tab=curves`, '.chart'],
    [`call in a session of ${turns} turns`, `/sessions/${session}?call=${Math.floor(turns * 0.7)}`, '.answer'],
    ['  its last call', `/sessions/${session}?call=${turns - 1}`, '.answer'],
  ]
  for (const [, path, selector] of shown) await timed(path, selector)
  const times = shown.map((): number[] => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, [, path, selector]] of shown.entries()) times[at]?.push(await timed(path, selector))
  }
  const floor = median(times[0] ?? [])
  console.log(`to the first rows, page loaded anew; medians of ${rounds} rounds`)
  for (const [at, [name]] of shown.entries()) {
    const ms = median(times[at] ?? [])
    console.log(`${name.padEnd(40)}${`${ms.toFixed(0)} ms`.padStart(10)}${`${(ms / floor).toFixed(2)}x`.padStart(9)}`)
  }
  console.log(
    `${'  first look at that run, nothing read'.padEnd(40)}${`${first.toFixed(0)} ms`.padStart(10)}${`${(first / floor).toFixed(2)}x`.padStart(9)}`,
  )
} finally {
  await browser.close()
  viewer.kill('SIGTERM')
  await once(viewer, 'exit')
  await rm(directory, { recursive: true, force: true })
}

/** A store of one run: a long rollout, and many short ones in groups of eight. */
async function record(): Promise<{ readonly runId: string; readonly session: string }> {
  await using store = await openStore(directory)
  const { catalogue, recorder } = store
  const [long = '', sample = ''] = await recordRollouts(store, [{ reward: 0, turns }, { reward: 0 }])
  const view = await catalogue.rollout(sample)
  const group = await catalogue.group(view.groupId)
  for (let at = 2; at < rollouts; at += 8) {
    const groupId = newId()
    await catalogue.putGroup({ ...group, id: groupId, promptVariant: `group ${at}` })
    const members = Array.from({ length: Math.min(8, rollouts - at) }, async (_, slot) => {
      const id = newId()
      await catalogue.putRollout({ id, runId: view.runId, groupId, slot, attempt: 0, harness: 'h', createdAt: 1 })
      await catalogue.endRollout(id, 3, 'completed', '')
      for (const verdict of view.verdicts) await catalogue.appendVerdict({ ...verdict, id: newId(), rolloutId: id })
    })
    await Promise.all(members)
  }
  const [session] = await recorder.sessions({ rolloutId: long })
  return { runId: view.runId, session: session?.id ?? '' }
}

function median(of: readonly number[]): number {
  return of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? Number.NaN
}
