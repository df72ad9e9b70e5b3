/** `paddock_rl.trl_harness`: TRL's own harness worker, in its own process, on a real `paddock serve`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'openenv/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('the harness worker of TRL 1.16.0 with OpenEnv 0.10.0', () => {
  it('gets the ids that the engine had, a baseline of those with a number, and what became of each row is said', () => {
    const test = join(import.meta.dirname, 'trl_harness_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 2 tests[^]*\nOK\n/)
  })
})
