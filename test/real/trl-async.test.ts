/** `paddock_rl.trl_async`: TRL's asynchronous queue, batcher, collator and weight sync on a real `paddock serve`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

const python = join(cache, 'trl/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('the asynchronous trainer of TRL 1.16.0', () => {
  it('gets exactly what was recorded, with advantages of those that have a number, and what became of each row is said', () => {
    const test = join(import.meta.dirname, 'trl_async_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 4 tests[^]*\nOK\n/)
  })
})
