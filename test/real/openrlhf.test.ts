/** `paddock_rl.openrlhf`: OpenRLHF's own code asks for rollouts on a real `paddock serve`, whose engine is the chat route in front of OpenRLHF's. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'openrlhf/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('OpenRLHF 0.11.2', () => {
  it('makes experiences of exactly what was recorded, with a baseline of the rollouts that have a number', () => {
    const test = join(import.meta.dirname, 'openrlhf_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 3 tests[^]*\nOK\n/)
  })
})
