import type { VerdictDraft } from '../reward/index.ts'
import type { TaskSteps } from './contract.ts'

/** The verdict on a task of several steps, with each artifact named after the step that it was taken after. */
export function wholeVerdict(steps: TaskSteps, drafts: readonly VerdictDraft[]): VerdictDraft {
  const artifacts = drafts.flatMap((draft, i) => {
    const step = steps.tasks[i]?.name
    return draft.artifacts.map((artifact) => (step === undefined ? artifact : { ...artifact, step }))
  })
  const judgeSessions = drafts.flatMap((draft) => draft.judgeSessions ?? [])
  return { ...steps.rollUp(drafts), artifacts, ...(judgeSessions.length === 0 ? {} : { judgeSessions }) }
}
