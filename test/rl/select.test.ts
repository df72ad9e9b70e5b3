/** A run whose selector says which members of its rounds train, on a real `paddock serve` with harnesses of its own. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Claim, type JsonRound, Trainer } from './trainer.ts'

let directory: string
let token: string
let serving: Serving
let trainer: Trainer

/** `extremes`: the best and the worst, as D3S takes the subset of greatest variance; `pivot`: all but the median, as MC-GRPO; both drop groups without variance. */
const selectors = `
const common = { apiVersion: 1, version: '1.0.0' }
const byReward = ({ rollouts }) => rollouts.toSorted((a, b) => a.verdict.reward - b.verdict.reward)
const flat = (sorted) => sorted.at(0)?.verdict.reward === sorted.at(-1)?.verdict.reward
const choosing = (name, reason, kept) => ({ ...common, name, select: (group) => {
  const sorted = byReward(group)
  const keep = flat(sorted) ? [] : sorted.filter((_, at) => kept(at, sorted.length)).map(({ rollout }) => rollout.id)
  return { keep, reason: flat(sorted) ? 'no variance' : reason }
} })
export default [
  choosing('extremes', 'not extreme', (at, count) => at === 0 || at === count - 1),
  choosing('pivot', 'pivot', (at, count) => at !== (count - 1) / 2),
  { ...common, name: 'broken', select: () => { throw new Error('no idea') } },
]`

beforeAll(async () => {
  directory = tempDir()
  const data = join(directory, 'data')
  await writeFile(join(directory, 'selectors.mjs'), selectors)
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(config, `import selectors from './selectors.mjs'\nexport default { selectors }\n`)
  serving = await serve(data, ['--config', config])
  token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  trainer = new Trainer(serving, token)
})
afterAll(async () => {
  await serving.stop()
})

/** A settled and claimed group of a run with a selector. */
async function claimed(
  run: string,
  select: string,
  rewards: readonly (number | null)[],
): Promise<{ claim: Claim; round: JsonRound; rollouts: readonly string[] }> {
  await trainer.ask('POST', '/runs', { run_id: run, select })
  await trainer.attach(run)
  const rollouts = await trainer.settle(run, `${run}.g`, rewards)
  const [claim] = await trainer.claim(run, { wait_s: 60 })
  if (claim === undefined) throw new Error('nothing settled')
  return { claim, round: await trainer.rows(claim.group_id, claim.claim_id), rollouts }
}
const reasons = ({ rows }: JsonRound) => Object.fromEntries(rows.map((row) => [row.rollout_id, row.unusable_reason]))

it('what it leaves out is filtered with its reason, counts in the round, and is owned by nobody', async () => {
  const { claim, round, rollouts } = await claimed('pivot', 'pivot', [0, 1, 0.5, null])
  const [worst = '', best = '', middle = '', unknown = ''] = rollouts
  expect(reasons(round)).toEqual({ [worst]: null, [best]: null, [middle]: 'filtered', [unknown]: 'no_number' })
  const members = round.members as readonly (JsonRound['members'][number] & { readonly filtered: string | null })[]
  expect(members.map(({ out, reward, filtered }) => [out, reward, filtered])).toEqual([
    [null, 0, null],
    [null, 1, null],
    [null, 0.5, 'selector pivot: pivot'],
    ['no_number', null, null],
  ])
  for (const row of round.rows) {
    const trains = row.arrays.loss_mask.some((bit) => bit === 1)
    expect(trains).toBe(row.rollout_id === worst || row.rollout_id === best)
    if (row.rollout_id === middle)
      expect(new Set(row.mask_reasons.map(([, , why]) => why))).toEqual(new Set(['filtered']))
  }
  // The same claim is the same bytes, late verdict or not.
  await trainer.ask('POST', `/rollouts/${middle}/verdict`, { source: 'late', reward: 1 })
  expect(await trainer.rows(claim.group_id, claim.claim_id)).toEqual(round)
})

it.each([
  ['extremes', [0, 0.5, 1, 0.5], [null, 'filtered', null, 'filtered']],
  ['extremes', [1, 1, 1], ['filtered', 'filtered', 'filtered']],
])('%s of %j leaves %j', async (select, rewards, left) => {
  const { round, rollouts } = await claimed(`${select}-${rewards.length}`, select, rewards)
  expect(rollouts.map((id) => reasons(round)[id])).toEqual(left)
})

it('the Python client takes the baseline over the whole round, and says what was filtered and why', async () => {
  await trainer.ask('POST', '/runs', { run_id: 'python', select: 'pivot' })
  await trainer.attach('python')
  await trainer.settle('python', 'python.g', [0, 1, 0.2])
  const program = `
import sys
from paddock_rl import Paddock, advantages
run = Paddock(sys.argv[1], sys.argv[2]).open_run("python")
run.attach()
for group in run.groups(limit=1):
    found = advantages(group, "mean")
    print([round(value, 3) for value in found.by_rollout.values()], len(found.rows))
    run.dispose_group(group, 1, computed=found)
run.close()`
  const client = fileURLToPath(new URL('../../clients/python/src', import.meta.url))
  const env = { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: '1' }
  const { stdout } = await promisify(execFile)('python3', ['-c', program, serving.ready.control, token], { env })
  expect(stdout).toBe('[-0.4, 0.6, -0.2] 2\n')
  const { tasks } = await trainer.ask<{ tasks: readonly { uses: object }[] }>('GET', '/tasks?run=python')
  expect(tasks[0]?.uses).toMatchObject({ used: 2, filtered: 1, skipped: 0 })
})

it('one that fails is one clear error, and one that chooses no rollouts is refused at once', async () => {
  expect(await trainer.refused('POST', '/runs', { select: 'thompson' })).toEqual([400, 'SELECTOR_UNKNOWN'])
  await trainer.ask('POST', '/runs', { run_id: 'broken', select: 'broken' })
  await trainer.attach('broken')
  await trainer.settle('broken', 'broken.g', [0, 1])
  const [claim] = await trainer.claim('broken', { wait_s: 60 })
  const answer = await trainer.send('GET', `/groups/broken.g/rounds/0/rows?claim_id=${claim?.claim_id}`)
  expect(await answer.json()).toMatchObject({ error: { code: 'SELECTOR_INVALID' } })
  expect(answer.status).toBe(400)
})
