import type { Digest, Id, Task } from '../../core/index.ts'
import { passReward, type RunRecord } from '../../trajectory/index.ts'
import type { PassRate, TaskDetail, TaskLine } from './contract.ts'
import { isEffective, type ReadRollout } from './rollout-lines.ts'

const mostRows = 500
const maxInstructionChars = 64_000

/** The tasks of a run, those that fewest passed first; tasks without a number last. */
export function taskLines(rollouts: readonly ReadRollout[]): readonly TaskLine[] {
  const byTask = Map.groupBy(rollouts, ({ taskDigest }) => taskDigest)
  return [...byTask]
    .map(([digest, own]): TaskLine => {
      const byHarness = Map.groupBy(own, ({ line }) => line.harness)
      return {
        digest,
        name: own[0]?.line.task ?? '',
        ...passRateOf(own),
        harnesses: Object.fromEntries([...byHarness].slice(0, 8).map(([name, of]) => [name, passRateOf(of)])),
      }
    })
    .toSorted((a, b) => shareOf(a) - shareOf(b) || b.effective - a.effective || (a.name < b.name ? -1 : 1))
}

/** What nobody can say stands behind all that somebody can. */
function shareOf({ passed, effective }: PassRate): number {
  return effective === 0 ? 2 : passed / effective
}

/** Counts of how rollouts went; what has no number that counts stands apart. */
export function passRateOf(rollouts: readonly ReadRollout[]): PassRate {
  const effective = rollouts.filter(isEffective)
  const running = rollouts.filter(({ line }) => line.end === null && line.reward === null).length
  return {
    passed: effective.filter(({ line }) => (line.reward ?? 0) >= passReward).length,
    effective: effective.length,
    without: rollouts.length - effective.length - running,
    running,
  }
}

/** A task over the runs that had it, newest first. */
export function taskDetail(
  task: Task,
  digest: Digest,
  rollouts: readonly ReadRollout[],
  runs: ReadonlyMap<Id, RunRecord>,
): Omit<TaskDetail, 'read'> {
  const cells = Map.groupBy(rollouts, ({ runId, line, handed }) =>
    JSON.stringify([runId, line.harness, handed?.labels.join(', ') ?? null]),
  )
  const rows = [...cells.values()].flatMap((own) => {
    const [first] = own
    if (first === undefined) return []
    const run = runs.get(first.runId)
    return [
      {
        runId: first.runId,
        runName: run?.name ?? '',
        runAt: run?.createdAt ?? 0,
        harness: first.line.harness,
        weights: first.handed?.labels.join(', ') ?? null,
        ...passRateOf(own),
      },
    ]
  })
  return {
    digest,
    name: task.name,
    environment: task.environment,
    instruction: task.instruction.slice(0, maxInstructionChars),
    all: passRateOf(rollouts),
    rows: rows.toSorted((a, b) => b.runAt - a.runAt).slice(0, mostRows),
    left: Math.max(0, rows.length - mostRows),
  }
}
