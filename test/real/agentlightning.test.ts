/** `paddock_rl.agentlightning`: Agent Lightning's own rollout manager asks for rollouts on a real `paddock serve`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'agentlightning/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('Agent Lightning 1.0.2', () => {
  it('makes batches of exactly what was recorded, with a baseline of the rollouts that have a number', () => {
    const test = join(import.meta.dirname, 'agentlightning_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 2 tests[^]*\nOK\n/)
  })
})
