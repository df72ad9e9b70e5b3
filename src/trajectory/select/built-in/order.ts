import type { Digest } from '../../../core/index.ts'
import type { CandidateTask, TaskChoice } from '../../rows-contract.ts'

/** The first `count` by rank, smallest first: compared number by number, and what is equal by chance. */
export function firstBy(
  { tasks, count, random }: Pick<TaskChoice, 'tasks' | 'count' | 'random'>,
  rank: (candidate: CandidateTask) => readonly number[],
): readonly Digest[] {
  const ranked = tasks.map((candidate) => ({ digest: candidate.task.digest, rank: [...rank(candidate), random()] }))
  return ranked
    .toSorted((a, b) => {
      const at = a.rank.findIndex((value, i) => value !== b.rank[i])
      return (a.rank[at] ?? 0) - (b.rank[at] ?? 0)
    })
    .slice(0, count)
    .map(({ digest }) => digest)
}
