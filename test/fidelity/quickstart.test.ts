import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { compareFiles } from './compare.ts'

/**
 * The quickstart as a newcomer runs it, both acts and both harnesses; then everything that it recorded is exported and
 * held against the engine's journal. Nothing here imports from `src/`.
 */
const root = fileURLToPath(new URL('../..', import.meta.url))
let scratch: string
let data: string
let out: string
let printed: string

beforeAll(async () => {
  scratch = tempDir()
  data = join(scratch, 'data')
  out = join(scratch, 'out')
  const { stdout } = await promisify(execFile)('./quickstart', ['--yes', '--data', data, '--out', out], {
    cwd: root,
    env: withoutEngine(),
    maxBuffer: 16 * 2 ** 20,
  })
  printed = stdout
}, 600_000)

describe('quickstart', () => {
  it('ends both acts and says what it wrote and what is left', () => {
    for (const text of ['Act 1', 'Act 2', 'qwen-code', 'Left running: nothing of Paddock', 'Next:']) {
      expect(printed).toContain(text)
    }
    for (const file of [
      'act1/rows.jsonl',
      'act2/verl/rows.parquet',
      'act2/jsonl/rows.jsonl',
      'act2/verl/manifest.json',
    ]) {
      expect(existsSync(join(out, file))).toBe(true)
    }
  })

  it('scores rollouts of both harnesses, with a number or a reason', () => {
    const { rollouts }: { rollouts: { harness: string; end: string; verdict: { status: string } | string | null }[] } =
      JSON.parse(paddock(['--json', 'list', 'rollouts']))
    const byHarness = Map.groupBy(rollouts, ({ harness }) => harness)
    expect(byHarness.get('reference')).toHaveLength(12)
    expect(byHarness.get('qwen-code')).toHaveLength(4)
    expect(new Set(rollouts.map(({ end }) => end))).toEqual(new Set(['completed']))
  })

  it.each(['jsonl', 'verl'])(
    'exports as %s exactly what the engine sampled, in the context it was sampled in',
    async (format) => {
      const directory = join(scratch, `all-${format}`)
      paddock(['export', '--format', format, '--out', directory])
      const report = await compareFiles(join(data, 'engine-journal.jsonl'), directory, { callsOnly: true })
      expect(report.deviations).toEqual([])
      expect(report.trainedTokens).toBeGreaterThan(5000)
      const manifest = JSON.parse(await readFile(join(directory, 'manifest.json'), 'utf8'))
      // Append-only harnesses: a row per rollout, whole.
      expect(report.rows).toBe(manifest.rollouts.exported)
    },
  )

  it('leaves a store in which fsck finds nothing', () => {
    expect(JSON.parse(paddock(['--json', 'fsck']))).toMatchObject({ problems: [] })
  })
})

function paddock(args: readonly string[]): string {
  return execFileSync('./paddock', ['--data', data, ...args], { cwd: root, env: withoutEngine() }).toString()
}

function withoutEngine(): NodeJS.ProcessEnv {
  const { ENGINE_URL: _url, ENGINE_API_KEY: _key, MODEL: _model, ...rest } = process.env
  return rest
}
