import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Id } from '../../core/index.ts'
import type { HandInAnswer, Lease } from '../../trajectory/index.ts'
import { type JobOutcome, JobRunner } from './job-runner.ts'

const leaseOf = (token: number): Lease => ({ jobId: 'job', session: 'session', token }) as unknown as Lease
const turns = async (n: number): Promise<void> => {
  for (let turn = 0; turn < n; turn++) await setImmediate()
}
const again: JobOutcome = { next: 'again', digest: 'digest' as never }

/** A runner of one job, which is claimed as often as it is handed in to be done again. */
function runnerOf(o: {
  readonly ends: number
  readonly onHandIn?: (runner: JobRunner) => 'taken' | undefined
  readonly onEnded?: () => Promise<void>
}) {
  const done: number[] = []
  const over = new AbortController()
  let made = 0
  let ready = true
  const runner: JobRunner = new JobRunner({
    queue: {
      join: async () => undefined,
      beat: async () => ({ cancel: [] }),
      leave: async () => undefined,
      retire: async () => undefined,
      giveBack: async () => undefined,
      handIn: async (job: Lease) => {
        done.push(job.token)
        const isAgain = done.length < o.ends
        // Whoever takes it before the answer is here leaves nothing to claim.
        ready = isAgain && o.onHandIn?.(runner) !== 'taken'
        return { accepted: true, state: isAgain ? 'ready' : 'done' } as unknown as HandInAnswer
      },
    } as never,
    claim: async () => {
      if (!ready) return []
      ready = false
      made += 1
      return [leaseOf(made)]
    },
    topic: 'topic',
    nodeName: 'here',
    places: 1,
    newId: () => 'id' as Id,
    signal: over.signal,
    work: async (_job, _signal, leave) => {
      leave()
      await turns(3)
      return again
    },
    onEnded: async () => {
      runner.wake()
      await o.onEnded?.()
      if (done.length === o.ends) over.abort()
    },
  })
  return { runner, done, isOver: () => false }
}

it('a job that is to be done again may be claimed before its last attempt was seen to', async () => {
  const { runner, done, isOver } = runnerOf({ ends: 3, onEnded: () => turns(1) })
  await runner.run(isOver)
  expect(done).toEqual([1, 2, 3])
})

it('a job that somebody else claims while it is handed in is done under that lease', async () => {
  const { runner, done, isOver } = runnerOf({
    ends: 2,
    onHandIn: (it) => {
      it.adopt(leaseOf(7))
      return 'taken'
    },
  })
  await runner.run(isOver)
  expect(done).toEqual([1, 7])
})
