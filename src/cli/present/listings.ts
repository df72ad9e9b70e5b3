import type { Digest, Verdict } from '../../core/index.ts'
import {
  type GroupRecord,
  type RolloutView,
  type RunRecord,
  type SessionRecord,
  verdictInForce,
} from '../../trajectory/index.ts'
import { type Paint, printable } from './colour.ts'
import { table } from './table.ts'
import { dateAndTime, duration, shortId } from './units.ts'

interface View {
  readonly paint: Paint
  readonly columns: number | null
}

/** Names of tasks. */
export type TaskNames = ReadonlyMap<Digest, string>

export function runTable(
  runs: readonly { readonly run: RunRecord; readonly rollouts: readonly RolloutView[] }[],
  view: View,
): string {
  return table(
    [
      { title: 'run' },
      { title: 'started' },
      { title: 'rollouts', align: 'right' },
      { title: 'mean', align: 'right' },
      { title: 'no number', align: 'right' },
      { title: 'name' },
    ],
    runs.map(({ run, rollouts }) => {
      const ended = rollouts.filter(({ end }) => end !== null)
      const rewards = ended.flatMap(({ verdicts }) => verdictInForce(verdicts)?.reward ?? [])
      const mean = rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length
      return [
        view.paint('name', shortId(run.id)),
        dateAndTime(run.createdAt),
        String(rollouts.length),
        mean === null ? view.paint('dim', '–') : Number(mean.toFixed(4)).toString(),
        String(ended.length - rewards.length),
        printable(run.name),
      ]
    }),
    view,
  )
}

export function groupTable(groups: readonly GroupRecord[], tasks: TaskNames, view: View): string {
  return table(
    [{ title: 'group' }, { title: 'run' }, { title: 'task' }, { title: 'prompt' }, { title: 'made' }],
    groups.map((group) => [
      view.paint('name', shortId(group.id)),
      shortId(group.runId),
      printable(tasks.get(group.taskDigest) ?? group.taskDigest.slice(0, 12)),
      printable(group.promptVariant),
      dateAndTime(group.createdAt),
    ]),
    view,
  )
}

/** With `tasks` they are of several runs, and each line says of which and of which task. */
export function rolloutTable(rollouts: readonly RolloutView[], view: View, tasks: TaskNames | null = null): string {
  const { paint } = view
  // A column for those that ran elsewhere, where there are any.
  const nodes = rollouts.some(({ labels }) => labels['node'] !== undefined)
  return table(
    [
      { title: 'rollout' },
      ...(tasks === null ? [] : [{ title: 'task' }, { title: 'run' }]),
      { title: 'group' },
      { title: 'slot', align: 'right' },
      { title: 'try', align: 'right' },
      { title: 'harness' },
      { title: 'end' },
      { title: 'verdict' },
      { title: 'reward', align: 'right' },
      { title: 'time', align: 'right' },
      ...(nodes ? [{ title: 'node' }] : []),
      { title: 'taint' },
    ],
    rollouts.map((rollout) => {
      const verdict = verdictInForce(rollout.verdicts)
      return [
        paint('name', shortId(rollout.id)),
        ...(tasks === null ? [] : [printable(tasks.get(rollout.taskDigest) ?? ''), shortId(rollout.runId)]),
        shortId(rollout.groupId),
        String(rollout.slot),
        String(rollout.attempt),
        printable(rollout.harness),
        endCell(rollout.end, paint, rollout.work !== null),
        verdictCell(verdict, paint),
        rewardCell(verdict, paint),
        rollout.startedAt === null || rollout.endedAt === null ? '' : duration(rollout.endedAt - rollout.startedAt),
        ...(nodes ? [printable(rollout.labels['node'] ?? '')] : []),
        paint('warn', rollout.taints.join(', ')),
      ]
    }),
    view,
  )
}

export function sessionTable(sessions: readonly SessionRecord[], view: View): string {
  return table(
    [{ title: 'session' }, { title: 'rollout' }, { title: 'role' }, { title: 'opened' }, { title: 'labels' }],
    sessions.map((session) => [
      view.paint('name', shortId(session.id)),
      session.rolloutId === null ? '' : shortId(session.rolloutId),
      session.role,
      dateAndTime(session.createdAt),
      Object.entries(session.labels)
        .map(([name, value]) => printable(`${name}=${value}`))
        .join(' '),
    ]),
    view,
  )
}

/** `done`: what its agent left is in the store. */
export function endCell(end: RolloutView['end'], paint: Paint, done = false): string {
  if (end === null) return done ? paint('warn', 'unverified') : paint('dim', 'running')
  return paint(end === 'completed' ? 'good' : end === 'infra' ? 'bad' : 'warn', end)
}

export function verdictCell(verdict: Verdict | null, paint: Paint): string {
  if (verdict === null) return paint('dim', 'none')
  return paint(verdict.status === 'scored' ? 'strong' : 'warn', verdict.status)
}

/** A null reward is a dash, never a zero. */
export function rewardCell(verdict: Verdict | null, paint: Paint): string {
  if (verdict === null || verdict.reward === null) return paint('dim', '–')
  const text = Number(verdict.reward.toFixed(4)).toString()
  return paint(verdict.reward > 0 ? 'good' : 'bad', text)
}
