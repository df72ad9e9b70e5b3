import { makeTask, sha256 } from '../../core/index.ts'
import { type DraftFacts, hacked, scored, unscored, type VerdictDraft } from '../../reward/index.ts'
import type { TaskSteps } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { StepData, TerminalData } from './data.ts'
import { terminalVerifierVersion } from './verify.ts'

/**
 * The steps of a task as the format runs them (Harbor, `docs/tasks/multi-step`; schema 1.4,
 * `src/harbor/models/task/config.py`, `StepConfig` and `MultiStepRewardStrategy`): each is a task of its own in the same
 * box. Null for a task of one step.
 */
export function stepsOf(task: TaskOf<TerminalData>): TaskSteps | null {
  const { steps } = task.data
  const tasks = stepTasksOf(task)
  if (steps === undefined || tasks === null) return null
  return {
    tasks,
    goesOn: (index, draft) => passes(steps[index], draft),
    rollUp: (drafts) => rollUp(task, steps, drafts),
  }
}

/** The steps of a task as tasks; null for a task of one step. */
export function stepTasksOf(task: TaskOf<TerminalData>): readonly TaskOf<TerminalData>[] | null {
  return task.data.steps?.map((step) => taskOf(task, step)) ?? null
}

function taskOf(task: TaskOf<TerminalData>, step: StepData): TaskOf<TerminalData> {
  const { steps: _, rewardOfSteps: __, ...whole } = task.data
  const data: TerminalData = {
    ...whole,
    step: step.name,
    agent: { ...whole.agent, ...step.agent },
    verifier: { ...whole.verifier, ...step.verifier },
    artifacts: step.artifacts,
    collect: step.collect,
    digests: { ...whole.digests, tests: sha256(`${whole.digests.tests} ${step.digest}`) },
  }
  const { environment, split, source } = task
  const name = `${task.name}/${step.name}`
  return { ...makeTask({ name, environment, instruction: step.instruction, split, source, data }), data }
}

/** A key that the verifier did not measure is below every minimum. */
function passes(step: StepData | undefined, draft: VerdictDraft): boolean {
  if (step === undefined || draft.reward === null || draft.status === 'hacked') return false
  const measured: Readonly<Record<string, number>> = { ...draft.components, reward: draft.reward }
  return Object.entries(step.minReward).every(([key, least]) => (measured[key] ?? Number.NEGATIVE_INFINITY) >= least)
}

/**
 * `mean`: of each key over the steps that were verified, one that a step did not measure counting 0. `final`: of the last
 * step that was verified. One step without a number, or one that was cheated, is the whole task's.
 */
function rollUp(task: TaskOf<TerminalData>, steps: readonly StepData[], drafts: readonly VerdictDraft[]): VerdictDraft {
  const facts: DraftFacts = {
    verifier: {
      id: `terminal/${task.name}`,
      version: terminalVerifierVersion,
      sha256: sha256(drafts.map(({ verifier }) => verifier.sha256).join('\n')),
    },
    trust: weakest.find((trust) => drafts.some((draft) => draft.trust === trust)) ?? 'separate',
    evidence: drafts.map(({ evidence }, i) => `== ${steps[i]?.name}\n${evidence}`).join('\n'),
    artifacts: drafts.flatMap(({ artifacts }) => artifacts),
  }
  const unknown = drafts.findIndex(({ reward }) => reward === null)
  const without = drafts[unknown]
  if (without !== undefined && without.reward === null) {
    return unscored(without.status, `step ${steps[unknown]?.name}: ${without.reason}`, facts)
  }
  const measured = drafts.map(({ components, reward }) => ({ ...components, reward: reward ?? 0 }))
  const last = measured.at(-1)
  if (last === undefined) return unscored('unscorable', 'No step was verified.', facts)
  const { reward, ...components } = task.data.rewardOfSteps === 'final' ? last : meanOf(measured)
  const byStep = Object.fromEntries(measured.map((one, i) => [`step/${steps[i]?.name}`, one.reward]))
  const whole = { ...facts, components: { ...components, ...byStep } }
  return drafts.some(({ status }) => status === 'hacked') ? hacked(0, whole) : scored(reward ?? 0, whole)
}

/** Less is to be said of a task than of any of its steps. */
const weakest = ['unvalidated', 'shared', 'in_process'] as const

function meanOf(list: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const keys = new Set(list.flatMap((one) => Object.keys(one)))
  return Object.fromEntries(
    [...keys].map((key) => [key, list.reduce((sum, one) => sum + (one[key] ?? 0), 0) / list.length]),
  )
}
