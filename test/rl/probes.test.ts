/** A trainer's probes over `/rl/v1` of a real `paddock serve`: exact prefixes, values by rule, a budget of the run, a bucket of the manifest. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openReader, promptOfCall, type SessionLog } from '../../src/trajectory/index.ts'
import { paddock, serve, type Serving } from '../cli/here.ts'
import { serve as serveProcess, type Serving as ServingProcess } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Json, talk, Trainer } from './trainer.ts'

interface Probe {
  readonly probe_call: string
  readonly session_id: string
  readonly prompt_tokens: number
  readonly budget: { readonly tokens: number; readonly spent: number }
  readonly continuations: readonly {
    readonly text: string
    readonly ids: readonly number[]
    readonly logprobs: readonly (number | null)[]
    readonly value: number | null
    readonly why: string | null
  }[]
}

let directory: string
let data: string
/** The first: a process of its own, which is killed. */
let killed: ServingProcess
let serving: Serving
let trainer: Trainer
beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  killed = await serveProcess(data)
  await use(killed)
})
afterAll(async () => {
  await serving.stop()
})

async function use(started: Serving): Promise<void> {
  serving = started
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

/** A rollout of two turns in a group of one, open still. */
async function begun(run: string, more: Json = {}) {
  await trainer.ask('POST', '/runs', { run_id: run, ...more })
  await trainer.attach(run)
  const task = { name: 'sum', instruction: 'Add 2 and 2.' }
  await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, n: 1 }] })
  const opened = await trainer.open(`${run}-g`)
  await talk(opened, 2)
  return opened
}
const logOf = async (session: string): Promise<SessionLog> => {
  await using reader = await openReader(data)
  return reader.recorder.session(session)
}
const probe = (call: string, more: Json = {}) =>
  trainer.ask<Probe>('POST', `/calls/${call}/probes`, { k: 2, max_tokens: 8, ...more })
const refused = (call: string, more: Json = {}) =>
  trainer.refused('POST', `/calls/${call}/probes`, { k: 2, max_tokens: 8, ...more })

it('continue the exact ids of a call, of its answer and of a suffix, with a value only by a rule', async () => {
  const opened = await begun('values')
  const log = await logOf(opened.session_id)
  const call = log.calls[1]?.intent.id ?? ''
  const path = promptOfCall(log, call)
  const answer = path?.answers.get(0)?.length ?? 0
  const prompt = path?.prompt.length ?? 0
  const plain = await probe(call)
  expect(plain).toMatchObject({ prompt_tokens: prompt, kind: 'raw', temperature: 1, version: { mixed: false } })
  expect(plain.continuations).toHaveLength(2)
  for (const { ids, logprobs, value, why } of plain.continuations) {
    expect(logprobs).toHaveLength(ids.length)
    expect([value, why]).toEqual([null, null])
  }
  const behind = await probe(call, { answer: { offset: 1 }, suffix: [5, 6, 7], k: 1, temperature: 0 })
  expect(behind.prompt_tokens).toBe(prompt + 1 + 3)
  const probed = promptOfCall(await logOf(behind.session_id), behind.probe_call)
  const head = [...(path?.answers.get(0)?.subarray(0, 1) ?? [])]
  expect([...(probed?.prompt ?? [])]).toEqual([...(path?.prompt ?? []), ...head, 5, 6, 7])
  expect((await probe(call, { answer: {} })).prompt_tokens).toBe(prompt + answer)
  const words = await probe(call, { suffix: ' The answer is' })
  expect(words.prompt_tokens).toBeGreaterThan(prompt)

  // What the policy says differs from time to time: each value is held against its own text.
  const [{ text: gold }] = plain.continuations as [Probe['continuations'][number]]
  const first = gold.trim().split(/\s+/)[0] ?? ''
  const valued = async (verifier: Json, holds: (text: string) => boolean): Promise<void> => {
    const { continuations } = await probe(call, { verifier, k: 4 })
    for (const { text, value, why } of continuations) {
      expect(value, text).toBe(holds(text) ? 1 : 0)
      expect(why).not.toBe('')
    }
  }
  await valued({ rule: 'exact', gold }, (text) => text.trim() === gold.trim())
  await valued({ rule: 'exact', gold: ['something else'] }, () => false)
  await valued({ rule: 'regex', pattern: '\\w' }, (text) => /\w/.test(text))
  await valued({ rule: 'regex', pattern: '^$', whole: true }, (text) => text.trim() === '')
  await valued({ rule: 'contains', gold: first }, (text) => text.toLowerCase().includes(first.toLowerCase()))
  await valued({ rule: 'number', gold: 4 }, (text) => Number(text.trim() || 'none') === 4)
  expect(await refused(call, { verifier: { rule: 'regex', pattern: '(' } })).toEqual([400, 'BODY_INVALID_SHAPE'])
  expect(await refused(call, { temperature: 0 })).toEqual([400, 'BODY_INVALID_SHAPE'])
  expect(await refused(call, { answer: { offset: answer + 1 } })).toEqual([409, 'PROBE_REFUSED'])
  expect(await refused(call, { answer: { choice: 1 } })).toEqual([409, 'PROBE_REFUSED'])
  expect(await refused(opened.session_id)).toEqual([404, 'NOT_FOUND'])
})

it('have a budget of their run, which a kill of Paddock does not give back', async () => {
  const opened = await begun('bounded', { probe_tokens: 40 })
  const call = (await logOf(opened.session_id)).calls[0]?.intent.id ?? ''
  expect(await refused(call, { k: 6 })).toEqual([429, 'PROBE_BUDGET'])
  const [first, second] = await Promise.all([probe(call), probe(call)])
  const sampled = [first, second]
    .flatMap(({ continuations }) => continuations)
    .reduce((sum, { ids }) => sum + ids.length, 0)
  expect(Math.max(first.budget.spent, second.budget.spent)).toBeGreaterThanOrEqual(sampled)
  const third = await probe(call, { k: 1 })
  const spent = sampled + (third.continuations[0]?.ids.length ?? 0)
  expect(third.budget).toEqual({ tokens: 40, spent })
  killed.kill('SIGKILL')
  await serving.ended
  await use(await serve(data))
  const fits = Math.floor((40 - spent) / 8)
  expect(await refused(call, { k: fits + 1 })).toEqual([429, 'PROBE_BUDGET'])
  const other = await begun('closed', { probe_tokens: 0 })
  const last = (await logOf(other.session_id)).calls[0]?.intent.id ?? ''
  expect(await refused(last, { k: 1, max_tokens: 1 })).toEqual([429, 'PROBE_BUDGET'])
})

it('are in no row, no count of the member and one bucket of the manifest', async () => {
  const opened = await begun('kept')
  const log = await logOf(opened.session_id)
  const { continuations } = await probe(log.calls[0]?.intent.id ?? '')
  const tokens = continuations.reduce((sum, { ids }) => sum + ids.length, 0)
  await trainer.end(opened.rollout_id, 1)
  const [claim] = await trainer.claim('kept', { wait_s: 60 })
  const { rows } = await trainer.rows('kept-g', claim?.claim_id ?? '')
  expect(rows).toHaveLength(1)
  expect(claim).toMatchObject({ settled: { usable: 1 } })
  const out = join(directory, 'export')
  const exported = await paddock([
    'export',
    '--data',
    data,
    '--format',
    'jsonl',
    '--out',
    out,
    '--rollout',
    opened.rollout_id,
  ])
  expect(exported.code, exported.err).toBe(0)
  const manifest = JSON.parse(await readFile(join(out, 'manifest.json'), 'utf8')) as {
    tokens: { sampled: number; trainable: number; not_exported: Json }
    drift: Json
  }
  expect(manifest.tokens.not_exported).toEqual({ probe: tokens })
  expect(manifest.tokens.sampled).toBe(manifest.tokens.trainable + tokens)
  expect(manifest.drift).toMatchObject({ calls: 2 })
  expect((await paddock(['fsck', '--data', data])).code).toBe(0)
})
