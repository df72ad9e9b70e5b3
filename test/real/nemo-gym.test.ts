/** `paddock_rl.nemo_gym`: NeMo Gym's own collection asks for rollouts on a real `paddock serve`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'nemo-gym/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('NeMo Gym 0.7.0', () => {
  it('gets exactly what was recorded, and no reward where there is none', () => {
    const test = join(import.meta.dirname, 'nemo_gym_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 1 test[^]*\nOK\n/)
  })
})
