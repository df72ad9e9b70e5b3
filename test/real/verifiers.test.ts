/** `paddock_rl.verifiers` on a real `paddock serve`: through verifiers' own environment server and client, as prime-rl asks. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'verifiers/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('verifiers 0.4.0', () => {
  it('serves rollouts with exactly what was recorded; one without a number is in no mean', () => {
    const test = join(import.meta.dirname, 'verifiers_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 3 tests[^]*\nOK\n/)
  })
})
