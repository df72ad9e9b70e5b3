/** Engines by role: rows of a run with the logprobs of a reference model and of a teacher, or null with the reason. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { type Json, type JsonRound, Trainer } from './trainer.ts'

interface Scores {
  readonly model: string | null
  readonly version: string | null
  readonly kind: string | null
  readonly engine: string | null
  readonly missing: string | null
}
interface Round extends JsonRound {
  readonly scores?: Readonly<Partial<Record<'reference' | 'teacher', Scores>>>
}
interface Arrays {
  readonly ref_logprobs?: readonly (number | null)[] | null
  readonly teacher_logprobs?: readonly (number | null)[] | null
}

let directory: string
let data: string
let reference: EngineProcess
let teacher: EngineProcess
let serving: Serving
let trainer: Trainer
beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  reference = await startEngine()
  teacher = await startEngine('--model', 'scripted-llama')
  const config = join(directory, 'paddock.config.mjs')
  const engines = { reference: { url: reference.url }, teacher: { url: `${teacher.url}/v1`, kind: 'vllm' } }
  await writeFile(config, `export default ${JSON.stringify({ engines })}\n`)
  serving = await serve(data, ['--config', config])
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
})
afterAll(async () => {
  await serving.stop()
  await Promise.all([reference.stop(), teacher.stop()])
})

async function settled(run: string, more: Json = {}): Promise<Round> {
  await trainer.ask('POST', '/runs', { run_id: run, ...more })
  await trainer.attach(run)
  await trainer.settle(run, `${run}-g`, [1, 0])
  const [claim] = await trainer.claim(run, { wait_s: 60 })
  return trainer.rows(`${run}-g`, claim?.claim_id ?? '')
}
const arraysOf = ({ rows }: JsonRound): readonly Arrays[] => rows.map(({ arrays }) => arrays as Arrays)
const generations = async () => {
  const answer = await fetch(`${reference.url}/control/journal`)
  const { lines } = (await answer.json()) as { lines: readonly { readonly kind: string }[] }
  return lines.filter(({ kind }) => kind === 'generation').length
}

it('rows have what the reference says of their ids, and null where the teacher cannot know them', async () => {
  const round = await settled('both', { score: { reference: true, teacher: true } })
  const { scores } = round
  expect(scores?.reference).toMatchObject({ model: 'scripted-hermes', kind: 'raw', temperature: 1, missing: null })
  expect(scores?.teacher).toMatchObject({ model: 'scripted-llama', version: null, kind: null })
  expect(scores?.teacher?.missing).toContain('tokenizer is not the policy')
  // Each engine is in the store as what it is.
  await using reader = await openReader(data)
  const kept = await reader.catalogue.fingerprint(scores?.teacher?.engine ?? '')
  expect(kept).toMatchObject({ engine: 'vllm', model: 'scripted-llama' })
  expect(round.rows.length).toBeGreaterThan(0)
  for (const [at, { arrays, logprob_kind: kind, n_tokens: length }] of (
    round.rows as readonly (JsonRound['rows'][number] & { logprob_kind: string })[]
  ).entries()) {
    const { ref_logprobs: found, teacher_logprobs: none } = arraysOf(round)[at] ?? {}
    expect(none).toBeNull()
    expect(found).toHaveLength(length)
    expect(found?.[0]).toBeNull()
    // The same weights under the same kind: what was recorded is what the reference says.
    expect(kind).toBe(scores?.reference?.kind)
    for (const [place, bit] of arrays.loss_mask.entries())
      if (bit === 1) expect(found?.[place]).toBeCloseTo(arrays.logprobs[place] ?? Number.NaN, 5)
  }
})

it('the same ids under the same weights are scored once, under other ones anew', async () => {
  const first = await settled('once', { score: { reference: true } })
  const before = await generations()
  const again = (): Promise<Round> => trainer.rows('once-g', null)
  expect(arraysOf(await again())).toEqual(arraysOf(first))
  expect(await generations()).toBe(before)
  await fetch(`${reference.url}/update_weight_version`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ new_version: 'newer' }),
  })
  expect((await again()).scores?.reference).toMatchObject({ version: 'newer', missing: null })
  expect(await generations()).toBeGreaterThan(before)
})

it('what is not asked for is absent, what is not configured is refused, and each role scores ids', async () => {
  const round = await settled('none')
  expect(round.scores).toBeUndefined()
  for (const arrays of arraysOf(round)) expect(Object.keys(arrays)).toEqual(['token_ids', 'loss_mask', 'logprobs'])
  const sequences = [{ ids: [5, 6, 7] }]
  const score = (role: string) => trainer.ask<{ sequences: readonly Json[] }>('POST', '/score', { sequences, role })
  expect((await score('reference')).sequences).toHaveLength(1)
  expect((await score('teacher')).sequences[0]).not.toEqual((await score('policy')).sequences[0])

  await reference.kill()
  const { scores, rows } = (await trainer.rows('once-g', null)) as Round
  expect(scores?.reference).toMatchObject({ missing: expect.stringContaining('ENGINE_UNREACHABLE') })
  for (const { arrays } of rows) expect((arrays as Arrays).ref_logprobs).toBeNull()
  expect(await trainer.refused('POST', '/score', { sequences, role: 'reference' })).toEqual([502, 'ENGINE_UNREACHABLE'])
})

it('a run that asks for an engine that nobody configured is refused', async () => {
  const bare = await serve(join(directory, 'bare'))
  try {
    const other = new Trainer(bare, (await readFile(join(directory, 'bare', 'control-token'), 'utf8')).trim())
    expect(await other.refused('POST', '/runs', { score: { teacher: true } })).toEqual([409, 'RUN_REFUSED'])
    const asked = { sequences: [{ ids: [5, 6] }], role: 'teacher' }
    expect(await other.refused('POST', '/score', asked)).toEqual([501, 'ENGINE_INCAPABLE'])
  } finally {
    await bare.stop()
  }
})
