/**
 * A trainer's run against a real `paddock serve` with the scripted engine and a harness of ours. First: rounds that wait for all
 * their members, beside rounds that start half as many again and stop at as many usable ones, without and with `carry`: wall
 * time, and length and reward of what is kept. Then: tasks of 2 and of 16 turns while weights are pushed after each step, under
 * each mode of staleness: how old the rows are, and how much of what is trained is of the slow tasks. Lengths are drawn from a
 * fixed seed; a turn is one call and a tool's time. Fails where rows are not as staleness says.
 *
 *   node bench/rl.ts [--rounds 16] [--groups 48] [--tool-ms 150] [--json]
 */
import { readFlags } from './flags.ts'
import { startPaddock } from './rl/client.ts'
import { biases, type EarlyRun, type Means, means, runEarly } from './rl/early.ts'
import { runStale, slowShare, type StaleRun } from './rl/stale.ts'

const { rounds, groups, toolMs, json, smoke } = readFlags(
  { rounds: 16, groups: 48, toolMs: 150, json: false },
  { rounds: 1, groups: 4, toolMs: 5 },
)
/** Whatever happens, it ends. */
const longestMs = 600_000
const guard = setTimeout(() => {
  console.error(`rl: not done after ${longestMs / 1000} s`)
  process.exit(1)
}, longestMs)

/** Members that a round needs. */
const n = smoke ? 2 : 8
const longer = smoke ? 2 : 3
const names = { wait: 'all are waited for', over: `1.5x started, stop at ${n}`, carry: 'the same, with carry' }
const early: EarlyRun[] = []
const stale: StaleRun[] = []
{
  await using paddock = await startPaddock()
  const sizes = { rounds, groups: 2, n, over: n / 2, toolMs }
  for (const how of ['wait', 'over', 'carry'] as const) early.push(await runEarly(paddock.client, how, sizes))
  // What goes on at the end of a run is missed: the longer the run, the less of it that is.
  early.push(await runEarly(paddock.client, 'carry', { ...sizes, rounds: longer * sizes.rounds }))
}
{
  await using paddock = await startPaddock()
  const sizes = { groups, n: 2, perStep: 2, maxAge: 1, toolMs: toolMs / 3 }
  for (const mode of ['report', 'cancel', 'gate'] as const) stale.push(await runStale(paddock.client, mode, sizes))
}
clearTimeout(guard)
const broken = faults()
if (json) console.log(JSON.stringify({ early, stale, broken }, null, 2))
else console.log([earlyTable(), biasTable(), staleTable()].join('\n\n'))
for (const fault of broken) console.error(`rl: ${fault}`)
if (broken.length > 0) process.exitCode = 1

/** What is said of the modes, held against the rows. */
function faults(): readonly string[] {
  const found: string[] = []
  for (const { mode, over, groups, trainedGroups } of stale) {
    if (mode !== 'report' && over > 0) found.push(`${mode} handed out ${over} usable rows over its bound`)
    if (mode !== 'cancel' && trainedGroups.slow + trainedGroups.fast !== groups.slow + groups.fast) {
      found.push(`${mode} has not trained on all groups`)
    }
  }
  for (const { how, rounds: asked, kept } of early) {
    if (kept.length < 2 * n * asked) found.push(`${how} has fewer usable members than its rounds ask for`)
  }
  return found
}

function earlyTable(): string {
  const perRound = ({ seconds, rounds }: EarlyRun): number => seconds / rounds
  const [wait] = early
  return table([
    [
      `2 groups of ${n}`,
      'rounds',
      'usable',
      'begun',
      'wall',
      'faster, by the round',
      'stopped, kept in part',
      'tokens: all',
      'kept, each',
      'stopped, each',
      'go on at the end',
    ],
    ...early.map((one) => [
      names[one.how],
      String(one.rounds),
      String(one.kept.length),
      String(one.begun.length),
      `${one.seconds.toFixed(1)} s`,
      `${wait === undefined ? '-' : (perRound(wait) / perRound(one)).toFixed(1)}x`,
      String(one.partial.members),
      String(one.sampledTokens),
      each(one.lengths.kept),
      each(one.lengths.censored),
      String(one.left),
    ]),
  ])
}

/** Length and reward of what was kept, beside all members that were begun. */
function biasTable(): string {
  const pair = ({ turns, reward }: Means, say: (number: number) => string): string => `${say(turns)}, ${say(reward)}`
  return table([
    ['turns, reward: means', 'rounds', 'all begun', 'kept', 'kept to all, after 1/4', '1/2', '3/4', 'the whole run'],
    ...early.map((one) => [
      names[one.how],
      String(one.rounds),
      ...[one.begun, one.kept].map((drawn) => pair(means(drawn), (number) => number.toFixed(2))),
      ...biases(one, 4).map((bias) => pair(bias, percent)),
    ]),
  ])
}

function staleTable(): string {
  return table([
    [
      'max 1, a push after 2 groups',
      'wall',
      'pushes',
      'had to wait',
      'usable rows',
      'oldest',
      'over max',
      'stale rows',
      'stopped',
      'slow groups trained',
      'slow share sampled',
      'trained',
    ],
    ...stale.map((one) => [
      one.mode,
      `${one.seconds.toFixed(1)} s`,
      String(one.pushes),
      String(one.gated),
      String(one.usableRows),
      String(one.oldest),
      String(one.over),
      String(one.stale),
      String(one.stopped),
      `${one.trainedGroups.slow} of ${one.groups.slow}`,
      `${(100 * slowShare(one.sampledTokens)).toFixed(0)}%`,
      `${(100 * slowShare(one.trainedTokens)).toFixed(0)}%`,
    ]),
  ])
}

function each({ mean_tokens: tokens }: EarlyRun['lengths']['kept']): string {
  return tokens === null ? '-' : tokens.toFixed(0)
}

function percent(part: number): string {
  return `${part < 0 ? '' : '+'}${(100 * part).toFixed(0)}%`
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
