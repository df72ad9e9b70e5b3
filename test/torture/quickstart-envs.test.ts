/** `./quickstart --env sql|search|gui` as a user runs it: the reference agent and Qwen Code over MCP, scored and exported. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { expect, test } from 'vitest'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { sized } from './size.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { ENGINE_URL: _url, ENGINE_API_KEY: _key, MODEL: _model, ...env } = process.env
const hasDocker = await requireDocker()

const components = {
  sql: ['submitted', 'executes', 'result'],
  search: ['em', 'evidence_recall', 'citations_grounded'],
  gui: ['state', 'not_given_up'],
}

test.runIf(hasDocker).each(sized<readonly (keyof typeof components)[]>(['sql', 'search', 'gui'], ['sql', 'search']))(
  '%s: two harnesses, twelve and four rollouts, component columns in both exports',
  async (name) => {
    const scratch = tempDir()
    const [data, out] = [join(scratch, 'data'), join(scratch, 'out')]
    const args = ['--yes', '--act', '2', '--env', name, '--data', data, '--out', out]
    const o = { cwd: root, env, maxBuffer: 16 * 2 ** 20 }
    await promisify(execFile)('./quickstart', args, o)
    const listed = await promisify(execFile)('./paddock', ['--data', data, '--json', 'list', 'rollouts'], o)
    const { rollouts }: { rollouts: { harness: string; end: string; verdict: { status: string } | null }[] } =
      JSON.parse(listed.stdout)
    const counts = Object.fromEntries(
      [...Map.groupBy(rollouts, ({ harness }) => harness)].map(([harness, of]) => [harness, of.length]),
    )
    expect(counts).toEqual({ reference: 12, 'qwen-code': 4 })
    expect(new Set(rollouts.map(({ end }) => end))).toEqual(new Set(['completed']))

    const lines = (await readFile(join(out, 'act2/jsonl/rows.jsonl'), 'utf8')).trim().split('\n')
    const rows: { harness?: string; verdict: { components: Record<string, number> } }[] = lines.map((line) =>
      JSON.parse(line),
    )
    expect(rows.length).toBeGreaterThan(0)
    const parquet = await parquetReadObjects({ file: await asyncBufferFromFile(join(out, 'act2/verl/rows.parquet')) })
    expect(parquet.length).toBeGreaterThan(0)
    for (const component of components[name]) {
      for (const { verdict } of rows) expect(verdict.components).toHaveProperty(component)
      for (const row of parquet) {
        const column: unknown = row['reward_components']
        expect(typeof column === 'string' ? JSON.parse(column) : column).toHaveProperty(component)
      }
    }
  },
)
