import type { GroupSummary, RepeatSummary, RolloutSummary, RunProgress, RunSummary } from '../../rollout/index.ts'
import type { Io } from '../io.ts'
import { type Paint, printable } from './colour.ts'
import { endCell, rewardCell, verdictCell } from './listings.ts'
import { table } from './table.ts'
import { duration, plural, shortId } from './units.ts'

/** Tells how a run goes: a line per ended rollout, and a line that says what is running where there is a terminal. */
export class RunProgressView {
  readonly #io: Io
  readonly #paint: Paint
  readonly #stages = new Map<string, string>()
  #total = 0
  #done = 0

  constructor(io: Io, paint: Paint) {
    this.#io = io
    this.#paint = paint
  }

  show(progress: RunProgress): void {
    switch (progress.type) {
      case 'run':
        this.#total = progress.rollouts
        this.#io.err(`run ${this.#paint('name', shortId(progress.runId))}: ${plural(progress.rollouts, 'rollout')}`)
        break
      case 'note':
        this.#io.err(this.#paint('dim', printable(progress.line)))
        break
      case 'stage':
        if (progress.phase === 'start') this.#stages.set(progress.rolloutId, progress.stage)
        else this.#stages.delete(progress.rolloutId)
        break
      case 'reward':
        break
      case 'ended':
        this.#stages.delete(progress.rollout.rolloutId)
        if (!progress.rollout.retried) this.#done += 1
        this.#io.err(this.#endedLine(progress.rollout))
        break
    }
    this.#io.status(this.#statusLine())
  }

  end(): void {
    this.#io.status(null)
  }

  #endedLine(rollout: RolloutSummary): string {
    const detail =
      rollout.end === 'completed' || rollout.detail === '' ? '' : `  ${printable(rollout.detail.split('\n')[0] ?? '')}`
    return [
      this.#paint('dim', `[${this.#done}/${this.#total}]`),
      `${rollout.task.name} #${rollout.slot}${rollout.attempt === 0 ? '' : ` (try ${rollout.attempt + 1})`}`,
      endCell(rollout.unverified ? null : rollout.end, this.#paint, true),
      `${verdictCell(rollout.verdict, this.#paint)} ${rewardCell(rollout.verdict, this.#paint)}`,
      duration(rollout.durationMs) + detail,
    ].join('  ')
  }

  #statusLine(): string {
    const byStage = new Map<string, number>()
    for (const stage of this.#stages.values()) byStage.set(stage, (byStage.get(stage) ?? 0) + 1)
    const parts = [...byStage].map(([stage, count]) => `${stage} ${count}`)
    return `${this.#done} of ${this.#total} done${parts.length === 0 ? '' : ` · ${parts.join(' · ')}`}`
  }
}

/** The table at the end of a run: every attempt, then the groups. */
export function runText(summary: RunSummary, paint: Paint, columns: number | null): string {
  const rollouts = table(
    [
      { title: 'task' },
      { title: 'harness' },
      { title: 'end' },
      { title: 'verdict' },
      { title: 'reward', align: 'right' },
      { title: 'calls', align: 'right' },
      { title: 'tokens', align: 'right' },
      { title: 'time', align: 'right' },
      { title: 'rollout' },
      { title: '' },
    ],
    summary.rollouts.map((rollout) => [
      rollout.task.name,
      rollout.harness,
      endCell(rollout.unverified ? null : rollout.end, paint, true),
      verdictCell(rollout.verdict, paint),
      rewardCell(rollout.verdict, paint),
      String(rollout.calls),
      String(rollout.sampledTokens),
      duration(rollout.durationMs),
      paint('name', shortId(rollout.rolloutId)),
      [
        ...(rollout.taints.length === 0 ? [] : [paint('warn', `tainted: ${rollout.taints.join(', ')}`)]),
        ...(rollout.retried ? ['retried'] : []),
      ].join(' '),
    ]),
    { paint, columns },
  )
  return [rollouts, '', ...summary.groups.map((group) => groupLine(group, paint)), ...tail(summary, paint)].join('\n')
}

function groupLine(group: GroupSummary, paint: Paint): string {
  const numbers =
    group.mean === null
      ? 'no rewards'
      : `mean ${group.mean.toFixed(3)}, deviation ${(group.deviation ?? 0).toFixed(3)} over ${group.rewards.length}`
  return `group ${paint('name', shortId(group.groupId))}  ${group.task.name}  ${numbers} of ${plural(group.size, 'rollout')}`
}

function repeatsLine({ repeats, tasks, mean, deviation, lowest, highest, flips }: RepeatSummary): string {
  const range = `${lowest.toFixed(3)} to ${highest.toFixed(3)}, deviation ${deviation.toFixed(3)}`
  return `${repeats} repeats of ${plural(tasks, 'task')}  mean ${mean.toFixed(3)}; the repeats ${range}; ${flips} of the tasks flip`
}

/** Statuses of verdicts that say nothing of the work. */
const faults: ReadonlySet<string> = new Set(['infra_error', 'judge_failed'])

function tail(summary: RunSummary, paint: Paint): string[] {
  const unverified = summary.rollouts.filter((rollout) => rollout.unverified).length
  const faulted = summary.rollouts.filter(({ verdict }) => verdict !== null && faults.has(verdict.status)).length
  const goesOn = `\`paddock run --resume ${shortId(summary.runId)}\` goes on`
  const verifies = `\`paddock rescore ${shortId(summary.runId)}\` verifies them`
  return [
    ...(summary.repeats === null ? [] : [repeatsLine(summary.repeats)]),
    ...summary.leftovers.map((left) => paint('warn', `left behind: ${left}; \`paddock gc\` removes it`)),
    ...(unverified === 0
      ? []
      : [paint('warn', `${plural(unverified, 'rollout')} unverified: ${summary.cancelled ? goesOn : verifies}`)]),
    ...(faulted === 0 ? [] : [paint('warn', `${plural(faulted, 'rollout')} without a number by a fault: ${verifies}`)]),
    ...(summary.cancelled ? [paint('warn', `cancelled: what was recorded is kept; ${goesOn}`)] : []),
    paint(
      'dim',
      `run ${shortId(summary.runId)}: \`paddock export --format jsonl --run ${shortId(summary.runId)} --out out/\``,
    ),
  ]
}
