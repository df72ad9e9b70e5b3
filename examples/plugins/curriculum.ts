/** A selector of tasks: one step after the other, from easy to hard. Named in a feed, or with `paddock run --select steps`. */
import { type CandidateTask, defineSelector } from 'paddock-rl/selector'

/** How hard a task is, as its author says; any number that grows will do. */
function hardness({ task: { data } }: CandidateTask): number {
  return typeof data === 'object' && data !== null && 'numbers' in data && Array.isArray(data.numbers)
    ? data.numbers.length
    : 0
}

export default defineSelector({
  name: 'steps',
  apiVersion: 1,
  version: '1.0.0',
  options: {
    /** A step is done when each of its tasks passes so often, */
    done: { default: 0.75, min: 0, max: 1 },
    /** over so many attempts at least. */
    attempts: { default: 4, min: 1 },
  },
  choose: ({ tasks, count, options: { done = 0.75, attempts = 4 }, random }) => {
    const open = tasks.filter(({ passed, numbers }) => numbers < attempts || passed / numbers < done)
    const left = open.length > 0 ? open : tasks
    const easiest = Math.min(...left.map(hardness))
    const step = left.filter((candidate) => hardness(candidate) === easiest)
    // The least asked first, so that groups that are under way count; among equals by chance.
    return step
      .map(({ task, asked }) => ({ digest: task.digest, rank: asked + random() }))
      .toSorted((a, b) => a.rank - b.rank)
      .slice(0, count)
      .map(({ digest }) => digest)
  },
})
