/** Agents that know nothing of us, in boxes, behind a real vLLM: their rows before an independent forward pass. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startVllm, type Vllm } from '../../scripts/learn.ts'
import { paddock } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { exportRows, judge, type Row, shifted } from './rows.ts'
import { cache, oneThread, weights } from './vllm.ts'

const tokens = 48
const harnesses = ['qwen-code', 'opencode', 'pi'] as const
const strategies = [
  { strategy: 'record', temperature: 1 },
  { strategy: 'splice', temperature: 0.2 },
] as const

describe.skipIf(cache === '')('agents behind vLLM 0.32.0 with a random Qwen3', () => {
  let directory: string
  let engine: Vllm
  const served = (): string => join(directory, 'served')
  const rows: Record<string, readonly Row[]> = {}
  beforeAll(async () => {
    directory = tempDir()
    await cp(weights('qwen3-tiny'), served(), { recursive: true })
    // Prompts of agents are long; random weights do not mind where they stand.
    const about = JSON.parse(await readFile(join(served(), 'config.json'), 'utf8')) as object
    await writeFile(join(served(), 'config.json'), JSON.stringify({ ...about, max_position_embeddings: 65_536 }))
    const flags = ['--max-model-len', '49152', '--enable-auto-tool-choice', '--tool-call-parser', 'hermes']
    engine = await startVllm({ cache, directory: served(), model: 'qwen3-tiny', flags, env: oneThread })
    for (const { strategy, temperature } of strategies) {
      const ran = harnesses.map(async (harness) => {
        const name = `${harness}-${strategy}`
        const data = join(directory, name)
        const config = join(directory, `${name}.config.ts`)
        // Random weights end no answer of themselves.
        const session = { strategy, pin: { temperature, maxTokens: tokens } }
        await writeFile(config, `export default { session: ${JSON.stringify(session)} }\n`)
        const about = ['--data', data, '--config', config, '--engine', engine.url, '--harness', harness]
        const task = ['examples/tasks/terminal', '--task', 'archive-recovery']
        const { code, out, err } = await paddock(['run', ...about, ...task])
        if (code !== 0) throw new Error(out + err)
        rows[name] = await exportRows(data, join(directory, `${name}-out`))
      })
      await Promise.all(ran)
    }
  })
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]()
  })

  it('agree with it on every trainable token, and shifted ids do not', async () => {
    const judged = await judge(directory, { at: served() }, { ...rows, shifted: shifted(rows['pi-splice'] ?? []) })
    console.log(judged)
    for (const { strategy } of strategies) {
      for (const harness of harnesses) {
        const { tokens: count, p99 } = judged[`${harness}-${strategy}`] ?? { tokens: 0, p99: Number.NaN }
        expect(count).toBeGreaterThanOrEqual(tokens)
        expect(p99).toBeLessThanOrEqual(1e-3)
      }
    }
    expect(judged['shifted']?.p99).toBeGreaterThan(1e-3)
  })
})
