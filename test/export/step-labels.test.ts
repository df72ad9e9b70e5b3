/** Values of single answers: each stands with the answer of its call, through a store and a late verdict. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { appendLate } from '../../src/rollout/index.ts'
import { recordRollouts } from '../../src/testing/exporter/index.ts'
import { openStore, runExport } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

it('puts the value of a call with its answer and what came of it, null where nobody gave one', async () => {
  const directory = tempDir()
  await using store = await openStore(join(directory, 'data'))
  const [valued = '', plain = ''] = await recordRollouts(store, [{ turns: 3 }, { turns: 3 }])
  const [session] = await store.recorder.sessions({ rolloutId: valued })
  const { calls } = await store.recorder.session(session?.id ?? '')
  const value = (nth: number, of: number) => ({ callId: calls[nth]?.intent.id ?? '', value: of })
  await appendLate(store, valued, { source: 'critic', steps: [value(0, 0.9), value(2, 0.1)] })
  const out = join(directory, 'out')
  const manifest = await runExport({
    reader: store,
    exporter: 'step-labels',
    options: { threshold: 0.5 },
    out,
    paddockVersion: '1.2.3',
  })
  const lines = (await readFile(join(out, 'steps.jsonl'), 'utf8')).trim().split('\n')
  expect(lines).toHaveLength(1)
  const { steps, ...row } = JSON.parse(lines[0] ?? '') as {
    steps: readonly { messages: readonly { role: string }[]; value: number | null; label?: boolean }[]
    rollout_id: string
    reward: number
  }
  expect(row).toMatchObject({ rollout_id: valued })
  expect(steps.map(({ value: of, label }) => [of, label])).toEqual([
    [0.9, true],
    [null, undefined],
    [0.1, false],
  ])
  expect(steps.every(({ messages }) => messages[0]?.role === 'assistant')).toBe(true)
  // The other rollout has no value, and is told as left out.
  expect(manifest.rollouts.dropped).toEqual([expect.objectContaining({ rollout_id: plain })])
})
