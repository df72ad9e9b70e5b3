import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type Environment, perAttempt, terminal } from '../../src/envs/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { openWorld, terminalTask } from './world.ts'

test('four rollouts of one task at once keep their state apart, from set-up over the tools to collection', async () => {
  await using world = await openWorld()
  const task = await terminalTask('log-forensics')
  await world.script(task, [{ tool: 'guess', args: {} }, { tool: 'guess', args: {} }, { say: 'done' }])
  const guesses = perAttempt(() => ({ attempt: '', count: 0 }))
  const collected: { readonly id: string; readonly seen: { attempt: string; count: number } }[] = []
  let begun = 0
  const all = Promise.withResolvers<void>()
  const guess = defineTool({
    name: 'guess',
    description: 'Guesses.',
    input: z.object({}),
    run: async (context) => {
      begun += 1
      if (begun === 4) all.resolve()
      // Nobody's second guess comes before everybody's first one.
      await all.promise
      guesses(context).count += 1
      return { status: 'ok', text: `${guesses(context).attempt} ${guesses(context).count}` }
    },
  })
  const environment: Environment = {
    ...terminal,
    tools: () => [guess],
    setup: async (context) => {
      guesses(context).attempt = context.attempt.id
      await terminal.setup(context)
    },
    collect: async (context) => {
      collected.push({ id: context.attempt.id, seen: guesses(context) })
      return terminal.collect(context)
    },
  }
  const { rollouts } = await world.run({
    environment,
    tasks: [task],
    harness: referenceAgent(),
    n: 4,
    limits: { agent: 4, boot: 2 },
  })
  const ids = rollouts.map(({ rolloutId }) => rolloutId).toSorted()
  expect(collected.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
    ids.map((id) => ({ id, seen: { attempt: id, count: 2 } })),
  )
  for (const id of ids) {
    const events = await world.store.recorder.events({ rolloutId: id })
    const told = events.flatMap((event) => (event.kind === 'tool_result' ? [event.result] : []))
    expect(told).toEqual([`${id} 1`, `${id} 2`])
  }
})
