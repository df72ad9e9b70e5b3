/** `paddock_rl.verl`, `.skyrl`, `.areal` and `.slime` on a real `paddock serve`: through the trainers' own classes, which need no GPU for that. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'trainers/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('verl 0.9.1, SkyRL 0.4.0, AReaL 1.0.4 and shapes of slime', () => {
  it('take exactly what was recorded, and their baselines are of the rollouts with a number', () => {
    const test = join(import.meta.dirname, 'trainers_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 8 tests[^]*\nOK\n/)
  })
})
