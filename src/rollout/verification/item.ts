import type { Task } from '../../core/index.ts'
import { type Artifacts, type Environment, type VerifyContext, verifierBoxes } from '../../envs/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { BoxLabels, EgressAttempt, SandboxProvider } from '../../sandbox/index.ts'
import type { FindRoleEngine } from '../role-engine.ts'
import { type JudgedWork, withJudge } from '../with-judge.ts'
import type { Verified } from './contract.ts'

/** The parts of a verification. */
export interface Verifier extends Pick<VerifyContext, 'signal' | 'emit'>, Partial<Pick<VerifyContext, 'toolCalls'>> {
  readonly environment: Environment
  readonly sandbox: SandboxProvider
  readonly labels: Partial<Pick<BoxLabels, 'run' | 'rollout'>>
  readonly onEgress?: (attempt: EgressAttempt) => void
  /** Null: no judge is configured. */
  readonly judge: FindRoleEngine | null
  readonly judged: JudgedWork
}

/** Applies the verifier of an environment to what an agent left. Live rollouts, resumed ones, `rescore`, trainers and nodes all come through here. */
export function verifyItem(
  o: Verifier,
  { task, artifacts }: { readonly task: Task; readonly artifacts: Artifacts },
): Promise<VerdictDraft> {
  const { environment, sandbox, labels, signal, emit, toolCalls, onEgress } = o
  return withJudge(o.judge, o.judged, (judge) =>
    environment.verify({
      task,
      artifacts,
      ...(toolCalls === undefined ? {} : { toolCalls }),
      openBox: verifierBoxes(sandbox, { labels, signal, ...(onEgress === undefined ? {} : { onEgress }) }),
      ...judge,
      signal,
      emit,
    }),
  )
}

/** Whether it says nothing of the work: boxes, images or a judge failed. */
export function isFault(came: Verified): boolean {
  return 'status' in came && (came.status === 'infra_error' || came.status === 'judge_failed')
}

/** A verification that a fault ended is tried so many times in all, as a box that does not start is. */
export const mostVerifyTries = 3

/** Verifies until a try ends without a fault, {@link mostVerifyTries} times at most. `isOver`: no further try is worth it. */
export async function triedAgain<T extends Verified>(
  verify: () => Promise<T>,
  isOver: () => boolean = () => false,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const came = await verify()
    if (!isFault(came) || tries >= mostVerifyTries || isOver()) return came
  }
}
