import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openReader, runExport } from '../../src/trajectory/index.ts'
import { keyHeader, type Lab, openLab, shell } from '../lab/lab.ts'
import type { Json } from '../lab/speaker.ts'

/** What becomes of shared prefixes, of many rows, and of their rewards. */
let lab: Lab
beforeAll(async () => {
  lab = await openLab({ model: 'scripted-qwen3' })
  await lab.script('Look.', [{ think: 'I look.' }, { shell: 'ls' }, { think: 'Done?' }, { say: 'Tidy.' }])
  await lab.script('Again.', [{ say: 'Still tidy.' }])
})
afterAll(() => lab[Symbol.asyncDispose]())

it('pitfall 23: what is stored grows with what is new, not with the conversation', async () => {
  const sizes: { turn: number; tokens: number; path: number }[] = []
  await lab.script('Long.', [
    ...Array.from({ length: 24 }, (_, index) => ({ shell: `step ${index}` })),
    { say: 'Done.' },
  ])
  const rollout = await lab.rollout({ strategy: 'splice', history: 'sampled' })
  const speaker = rollout.speaker('chat')
  speaker.user('Long.')
  for (let turn = 0; turn < 24; turn += 1) {
    const said = await rollout.ask(speaker)
    speaker.take(said, 'given')
    speaker.results(said, ['x'.repeat(50)])
    const { segments } = await rollout.log()
    const [last] = (await rollout.truth()).slice(-1)
    const tokens = segments.reduce((sum, segment) => sum + segment.tokens.length, 0)
    sizes.push({ turn, tokens, path: (last?.prompt.length ?? 0) + (last?.tokens.length ?? 0) })
  }
  // Every token of the conversation is stored once, at every turn.
  expect(sizes.map(({ turn, tokens }) => [turn, tokens])).toEqual(sizes.map(({ turn, path }) => [turn, path]))
})

it('pitfall 24 and 25: rollouts with different numbers of rows: statistics count rollouts, the weight rule is explicit', async () => {
  const ids: string[] = []
  for (const [reward, again] of [
    [1, true],
    [0, false],
  ] as const) {
    const rollout = await lab.rollout({ strategy: 'record' })
    const speaker = rollout.speaker('chat')
    for (const instruction of again ? ['Look.', 'Again.'] : ['Look.']) {
      speaker.user(instruction)
      for (let turn = 0; turn < 4; turn += 1) {
        const said = await rollout.ask(speaker)
        speaker.take(said, 'given')
        if (said.calls.length === 0) break
        speaker.results(said, ['done'])
      }
    }
    await rollout.score(reward)
    ids.push(rollout.id)
  }
  const weights = async (weightRule: 'full' | '1/K' | 'per-token' | 'first-owner') => {
    const out = join(lab.directory, `weights-${weightRule.replace('/', '-')}`)
    await using reader = await openReader(lab.storeDirectory)
    const query = { rolloutIds: ids, weightRule }
    const manifest = await runExport({ reader, exporter: 'verl', out, query, paddockVersion: '0.0.0' })
    const archive = join(lab.directory, `archive-${weightRule.replace('/', '-')}`)
    await runExport({ reader, exporter: 'jsonl', out: archive, query, paddockVersion: '0.0.0' })
    const lines = (await readFile(join(archive, 'rows.jsonl'), 'utf8')).trim().split('\n')
    return { manifest, rows: lines.map((line) => JSON.parse(line) as Json) }
  }
  const { manifest, rows } = await weights('1/K')
  // Thinking that the template strips makes a second row of the first rollout.
  expect([...Map.groupBy(rows, (row) => row.rollout_id).values()].map((of) => of.length)).toEqual([2, 1])
  expect(manifest.rewards).toMatchObject({ count: 2, mean: 0.5, std: 0.5 })
  expect(manifest.rollouts.exported).toBe(2)
  expect(manifest.rules).toMatchObject({ reward_weight: '1/K', token_ownership: 'train-once' })
  const perRollout = (of: readonly Json[]) =>
    ids.map((id) => of.filter((row) => row.rollout_id === id).map((row) => row.row_weight ?? row.weight))
  expect(perRollout(rows)).toEqual([[0.5, 0.5], [1]])
  expect(perRollout((await weights('full')).rows)).toEqual([[1, 1], [1]])
  expect(perRollout((await weights('first-owner')).rows)).toEqual([[1, 0], [1]])
  const [shares = []] = perRollout((await weights('per-token')).rows)
  expect(shares.reduce((a: number, b: number) => a + b, 0)).toBeCloseTo(1, 6)
  expect(rows.every((row) => row.group_id === rows[0].group_id)).toBe(true)
})

it('pitfall 26: a prefix that rows share is trained once', async () => {
  const rollout = await lab.rollout({ strategy: 'splice', history: 'sampled' })
  const speaker = rollout.speaker('chat')
  speaker.user('Look.')
  const said = await rollout.ask(speaker)
  speaker.take(said, 'given')
  speaker.results(said, ['a.txt'])
  // Three answers to the same prompt: three rows behind one sampled turn.
  const { path, body } = speaker.request({ model: lab.model, stream: false, maxTokens: 200, tools: [shell] })
  await rollout.post(path, { ...body, n: 3, temperature: 1 }, keyHeader('chat', rollout.key))
  const { report, manifest } = await rollout.judge()
  expect([report.deviations, report.rows]).toEqual([[], 3])
  expect(manifest.tokens.trainable).toBe(report.sampledTokens)
  expect(report.trainedTokens).toBe(report.sampledTokens)
})
