/** `paddock rewrite`: what a teacher makes of a recorded rollout, and who takes it. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openReader, verdictInForce } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'

let directory: string
let data: string
let original: string
let exports = 0
beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  const ran = await paddock(['run', 'records:0:1', '--env', 'sql', '--n', '1', '--data', data, '--json'])
  expect(ran.code, ran.err).toBe(0)
  original = JSON.parse(ran.out).summary.rollouts[0].rolloutId
})

async function rewrite(lines: readonly object[], ...args: string[]) {
  const file = join(directory, 'edits.jsonl')
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return paddock(['rewrite', '--with', file, '--data', data, '--json', ...args])
}

async function lines(format: string, ...args: string[]): Promise<{ rows: readonly string[]; dropped: unknown }> {
  const out = join(directory, `out-${(exports += 1)}`)
  const ran = await paddock(['export', '--format', format, '--out', out, '--data', data, '--json', ...args])
  expect(ran.code, ran.err).toBe(0)
  const manifest = JSON.parse(await readFile(join(out, 'manifest.json'), 'utf8'))
  const rows = (await readFile(join(out, manifest.files[0].name), 'utf8')).split('\n').filter(Boolean)
  return { rows, dropped: manifest.rollouts.dropped }
}

describe('paddock rewrite', () => {
  it('makes verified and unverified rollouts that name where they come from, once', async () => {
    await using store = await openReader(data)
    const { sessionId, calls, gold } = await (async () => {
      const [session] = await store.recorder.sessions({ rolloutId: original })
      const log = await store.recorder.session(session?.id ?? '')
      const task = await store.catalogue.task((await store.catalogue.rollout(original)).taskDigest)
      const { golds } = task.data as { readonly golds: readonly string[] }
      return { sessionId: log.session.id, calls: log.calls.map(({ intent }) => intent.id), gold: golds[0] ?? '' }
    })()
    expect(sessionId).not.toBe('')
    const cut = { from: 2, to: null, messages: [{ role: 'assistant', content: 'The count, at once.' }] }
    const asked = [
      { rollout: original, by: 'teacher', reason: 'shorter', edits: [cut], answer: gold, labels: { kind: 'InT' } },
      { by: 'teacher', edits: [cut], answer: 'SELECT 0 - 1' },
      { by: 'teacher', edits: [{ ...cut, messages: [{ role: 'assistant', content: 'Nobody looked at this.' }] }] },
    ]
    const made = await rewrite(asked, original)
    expect(made.code, made.err).toBe(0)
    const report = JSON.parse(made.out)
    expect(report).toMatchObject({ isNew: true, taken: 3, rewrites: 3, groups: 1, withVerdict: 2 })
    const again = JSON.parse((await rewrite(asked, original)).out)
    expect(again).toMatchObject({ runId: report.runId, isNew: false, taken: 0 })

    const found = (await store.catalogue.rollouts({ runId: report.runId })).toSorted((a, b) => a.slot - b.slot)
    expect(found.map(({ verdicts }) => verdictInForce(verdicts)?.reward ?? null)).toEqual([1, 0, null])
    expect(found[0]).toMatchObject({ harness: 'rewritten', end: 'completed' })
    expect(found[0]?.labels).toMatchObject({
      kind: 'InT',
      place: 'edits.jsonl#1',
      'rewritten.from': original,
      'rewritten.by': 'teacher',
      'rewritten.reason': 'shorter',
      'rewritten.message': '2',
      'rewritten.call': calls[0],
    })
    expect(verdictInForce(found[0]?.verdicts ?? [])?.artifacts).toHaveLength(1)
    // Its work is kept: the verifier of another day can look at it.
    const rescored = await paddock(['rescore', report.runId, '--data', data, '--json'])
    expect(JSON.parse(rescored.out).rollouts.map(({ outcome }: { outcome: string }) => outcome)).toEqual([
      'same',
      'same',
      'not_stored',
    ])
  })

  it('is for formats of messages, and left out of those for RL by its name', async () => {
    const sft = await lines('openai')
    expect(sft.rows.filter((row) => row.includes('The count, at once.'))).toHaveLength(2)
    expect(sft.rows.some((row) => row.includes('Nobody looked'))).toBe(false)
    const unscored = await lines('sharegpt', '--include-null-verdicts')
    expect(unscored.rows.filter((row) => row.includes('Nobody looked'))).toHaveLength(1)
    const rl = await lines('jsonl', '--include-null-verdicts')
    expect(rl.rows.some((row) => row.includes('The count'))).toBe(false)
    const rewritten = { reason: 'rewritten', detail: original }
    expect(rl.dropped).toMatchObject([rewritten, rewritten, rewritten])
    const pairs = await lines('dpo')
    expect(pairs.rows).toEqual([])
  })

  it('writes nothing where one of many cannot be made, and says which', async () => {
    const fine = { by: 'me', edits: [{ from: 2, to: null, messages: [{ role: 'assistant', content: 'fine' }] }] }
    const wrong = async (line: object) => (await rewrite([fine, line], original)).err
    expect(await wrong({ by: 'me', edits: [{ from: 99, messages: [] }] })).toMatch(/REWRITE_REFUSED.*edits.jsonl#2/)
    expect(await wrong({ by: 'me', edits: [] })).toMatch(/REWRITE_REFUSED.*edits.jsonl#2/)
    expect(await wrong({ ...fine, rollout: 'ffffffff' })).toMatch(/NOT_FOUND/)
    expect((await rewrite([fine])).err).toMatch(/USAGE.*names no rollout/)
    const { rows } = await lines('sharegpt', '--include-null-verdicts')
    expect(rows.some((row) => row.includes('"fine"'))).toBe(false)
  })

  it('writes each beside what it corrects as a preference pair', async () => {
    const file = join(directory, 'pairs.jsonl')
    const answer = { role: 'assistant', content: 'The count, better.' }
    const asked = [
      {
        by: 'teacher',
        reason: 'first wrong step',
        trains: 'edits',
        edits: [{ from: 2, to: null, messages: [answer] }],
      },
      // What the model was told is not its preference.
      { by: 'teacher', edits: [{ from: 1, messages: [{ role: 'user', content: 'Another question' }] }] },
    ]
    const made = await rewrite(asked, original, '--name', 'pairs', '--pairs', file)
    expect([made.code, made.err]).toEqual([0, expect.any(String)])
    expect(JSON.parse(made.out)).toMatchObject({ rewrites: 2, pairs: 1 })
    const [pair] = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(pair).toMatchObject({
      chosen: [answer],
      reward_chosen: null,
      reward_rejected: 1,
      rollout_rejected: original,
      by: 'teacher',
      reason: 'first wrong step',
    })
    expect(pair.prompt.map(({ role }: { role: string }) => role)).toEqual(['system', 'user'])
    expect(pair.rejected.length).toBeGreaterThan(1)
    expect(JSON.stringify(pair)).not.toContain('"weight"')
    const twice = await rewrite(asked, original, '--pairs', file)
    expect([twice.code, twice.err]).toEqual([2, expect.stringContaining('is there already')])
  })
})
