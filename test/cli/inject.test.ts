/** `paddock run --inject`, and what exports make of it. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'
import type { RunSummary } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
const hint = { at: 'task', text: 'Ask the heron.', label: 'hint' }
let directory: string
beforeAll(async () => {
  directory = tempDir()
  await writeFile(join(directory, 'hint.json'), JSON.stringify([hint]))
  await writeFile(join(directory, 'nudge.json'), JSON.stringify([{ ...hint, at: { turn: 1 }, label: 'nudge' }]))
  await writeFile(join(directory, 'wrong.json'), JSON.stringify([{ at: 'nowhere', text: 'x', label: 'y' }]))
})

interface Line {
  readonly token_ids: readonly number[]
  readonly loss_mask: readonly number[]
  readonly logprobs: readonly (number | null)[]
  readonly injected: readonly { readonly start: number; readonly labels: readonly string[] }[]
  readonly off_context: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly unusable_reasons: readonly string[]
}

it('the policy of a run sees a hint, its rows have it, and the clean ones do not', async () => {
  const data = ['--data', join(directory, 'data')]
  const run = async (...more: string[]) => {
    const { out } = await paddock([...more, '--json', ...data])
    return (JSON.parse(out) as { summary: RunSummary }).summary
  }
  const asked = ['run', task, '--harness', 'reference', '--n', '1']
  const plain = await run(...asked)
  const hinted = await run(...asked, '--inject', join(directory, 'hint.json'))
  const [parent] = hinted.rollouts
  if (parent === undefined) throw new Error('no rollout')
  const nudged = await run('fork', parent.rolloutId, '--at', '2', '--n', '1', '--inject', join(directory, 'nudge.json'))
  expect([hinted, nudged].flatMap(({ rollouts }) => rollouts.map(({ end }) => end))).toEqual(['completed', 'completed'])
  let count = 0
  const exported = async (runId: string, format: string, file: string, ...more: string[]) => {
    count += 1
    const out = join(directory, `export-${count}`)
    const ended = await paddock(['export', '--format', format, '--out', out, '--run', runId, ...more, ...data])
    if (ended.code !== 0) return ended.err
    return readFile(join(out, file), 'utf8')
  }
  const lineOf = async (runId: string, ...more: string[]) =>
    JSON.parse(await exported(runId, 'jsonl', 'rows.jsonl', ...more)) as Line
  const without = await lineOf(plain.runId)
  const seen = await lineOf(hinted.runId)
  const clean = await lineOf(hinted.runId, '--view', 'clean')
  expect(seen.labels).toMatchObject({ inject: 'hint' })
  expect(seen.injected).toMatchObject([{ labels: ['hint'] }])
  expect([seen.off_context, clean.off_context, clean.injected]).toEqual([false, true, []])
  const prompt = (line: Line) => line.token_ids.slice(0, line.loss_mask.indexOf(1))
  expect(prompt(clean)).toEqual(prompt(without))
  expect(prompt(seen)).not.toEqual(prompt(without))
  expect(clean.logprobs.filter((_, at) => clean.loss_mask[at] === 1).every((one) => one === null)).toBe(true)
  expect(clean.unusable_reasons).toContain('off_context')
  const child = await lineOf(nudged.runId)
  expect(child.labels).toMatchObject({ inject: 'nudge' })
  expect(child.injected.map(({ labels }) => labels)).toEqual([['hint'], ['hint', 'nudge']])
  // What an imitation learns from is what the policy saw, unless the other view is asked for.
  const view = ['--view', 'clean']
  expect(await exported(hinted.runId, 'openai', 'messages.jsonl')).toContain('heron')
  expect(await exported(hinted.runId, 'openai', 'messages.jsonl', ...view)).not.toContain('heron')
  expect(await exported(hinted.runId, 'verl', 'none', ...view)).toMatch(/EXPORT_REFUSED.*no logprobs there/s)
  const { out: shown } = await paddock(['show', parent.rolloutId, ...data])
  expect(shown).toMatch(/injected +hint in the prompt/)
  const wrong = await paddock([...asked, '--inject', join(directory, 'wrong.json'), ...data])
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('inject')])
  const missing = await paddock([...asked, '--inject', join(directory, 'none.json'), ...data])
  expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('does not exist')])
})
