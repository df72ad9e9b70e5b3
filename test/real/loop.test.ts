/** The reference loop of `examples/train/loop.py`: torch, a small Llama, and a Paddock that its test plays. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cache } from './vllm.ts'

describe.skipIf(cache === '')('the reference loop', () => {
  it('learns at lags 0, 2 and 4 and with an adapter, stops at wrong rows, goes on from its checkpoint, by the words of the guide', () => {
    const test = join(import.meta.dirname, 'loop_test.py')
    const { status, stderr } = spawnSync(join(cache, 'venv/bin/python'), ['-B', test], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 10 tests[^]*\nOK\n$/)
  })
})
