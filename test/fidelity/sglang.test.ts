/** The whole way again, with SGLang's wire under it: every template profile, judged by the same comparer. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openReader, runExport } from '../../src/trajectory/index.ts'
import { compareFiles } from './compare.ts'
import { record } from './world.ts'

it.each([
  { model: 'scripted-hermes', echoesThinking: true, streams: false, strips: false },
  { model: 'scripted-hermes', echoesThinking: true, streams: true, strips: false },
  { model: 'scripted-qwen', echoesThinking: true, streams: true, strips: false },
  { model: 'scripted-llama', echoesThinking: false, streams: true, strips: false },
  { model: 'scripted-qwen3', echoesThinking: true, streams: true, strips: true },
  { model: 'scripted-qwen3-thinking', echoesThinking: true, streams: false, strips: true },
])('SGLang, $model, streamed: $streams: exports what was sampled', async ({ strips, ...habits }) => {
  await using recorded = await record({ ...habits, siblings: 2, hangsUp: true }, undefined, 'sglang')
  const out = join(recorded.directory, 'jsonl')
  await using reader = await openReader(recorded.storeDirectory)
  const manifest = await runExport({ reader, exporter: 'jsonl', out, paddockVersion: '0.0.0' })
  const report = await compareFiles(recorded.engine.journal, out)
  expect(report.deviations).toEqual([])
  expect(report.trainedTokens).toBeGreaterThan(100)
  expect(manifest.drift.exactness_rate).toBe(1)
  // The history is the template's own: what it strips forks, with that cause and no other.
  if (strips) expect(Object.keys(manifest.drift.forks)).toEqual(['think_stripped'])
  else expect(manifest.drift).toMatchObject({ extension_rate: 1, forks: {} })
})
