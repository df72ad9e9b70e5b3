/** The whole way: a black-box agent, the proxy, the store, an export, and the comparer that knows none of them. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Manifest, openReader, runExport } from '../../src/trajectory/index.ts'
import { compareFiles, type Report } from './compare.ts'
import { record, type Recorded } from './world.ts'

const formats = ['jsonl', 'verl'] as const

async function exportAs(recorded: Recorded, format: string): Promise<{ manifest: Manifest; report: Report }> {
  const out = join(recorded.directory, format)
  await using reader = await openReader(recorded.storeDirectory)
  const manifest = await runExport({ reader, exporter: format, out, paddockVersion: '0.0.0' })
  return { manifest, report: await compareFiles(recorded.engine.journal, out) }
}

interface Conversation {
  readonly messages: readonly Readonly<Record<string, unknown>>[]
  readonly tools?: readonly unknown[]
}

function withoutWeight(message: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(message).filter(([name]) => name !== 'weight'))
}

/** Each rollout asks twice, once for two answers, and hangs up once: see world.ts. */
const rollouts = 2
const siblings = 2

describe.each([
  { model: 'scripted-hermes', echoesThinking: true, streams: false, strips: false },
  { model: 'scripted-hermes', echoesThinking: true, streams: true, strips: false },
  { model: 'scripted-qwen', echoesThinking: true, streams: true, strips: false },
  { model: 'scripted-llama', echoesThinking: false, streams: true, strips: false },
  { model: 'scripted-qwen3', echoesThinking: true, streams: true, strips: true },
])('$model, streamed: $streams', ({ strips, ...habits }) => {
  it('exports what the engine sampled, token for token, and extends what is append-only', async () => {
    await using recorded = await record({ ...habits, siblings, hangsUp: true })
    for (const format of formats) {
      const { manifest, report } = await exportAs(recorded, format)
      expect(report.deviations).toEqual([])
      expect(report.trainedTokens).toBeGreaterThan(100)
      expect(manifest.rollouts.exported).toBe(rollouts)
      expect(manifest.drift.exactness_rate).toBe(1)
      const forks = Object.values(manifest.drift.forks).reduce((a, b) => a + b, 0)
      if (strips) expect(Object.keys(manifest.drift.forks)).toEqual(['think_stripped'])
      else expect(manifest.drift).toMatchObject({ extension_rate: 1, forks: {} })
      // One path and one sibling per rollout, one more per fork, and in the archive the title call.
      const titles = format === 'jsonl' ? rollouts : 0
      expect(manifest.rows.count).toBe(rollouts * siblings + forks + titles)
      const untrained = format === 'jsonl' ? manifest.tokens.masked : manifest.tokens.not_exported
      expect(untrained['class']).toBeGreaterThan(0)
    }
  })

  it('exports conversations as the agent had them', async () => {
    await using recorded = await record({ ...habits, siblings: 1, hangsUp: false })
    const out = join(recorded.directory, 'openai')
    await using reader = await openReader(recorded.storeDirectory)
    await runExport({ reader, exporter: 'openai', out, paddockVersion: '0.0.0', query: { minReward: 1 } })
    const lines = (await readFile(join(out, 'messages.jsonl'), 'utf8')).trimEnd().split('\n')
    const conversations = lines.map((line) => JSON.parse(line) as Conversation)
    const [whole] = conversations.toSorted((a, b) => b.messages.length - a.messages.length)
    const transcript = recorded.transcripts.at(-1) ?? []
    expect(whole?.messages.slice(0, -1).map(withoutWeight)).toEqual(transcript.slice(0, -1))
    expect(whole?.messages.at(-1)).toMatchObject({ role: 'assistant', content: expect.stringMatching(/txt/) })
    expect(whole?.tools).toHaveLength(1)
    // Where the template strips thinking, the first question's answers are prompt text of the second row.
    const untrained = whole?.messages.filter((message) => message['weight'] === 0).length
    if (strips) expect(untrained).toBeGreaterThan(0)
    else expect([untrained, lines.length]).toEqual([0, 1])
  })
})
