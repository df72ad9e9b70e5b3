/** `paddock_rl.trl`: TRL's own trainer, a real `paddock serve`, and an engine of a few lines with the trainer's weights. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'trl/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('TRL 1.16.0', () => {
  it('trains on exactly what was recorded, by its own advantages, and says what became of each row', () => {
    const test = join(import.meta.dirname, 'trl_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 11 tests[^]*\nOK( \(skipped=1\))?\n$/)
  })
})
