/** Exports and converters through the classes of those who read them: ATIF's own models, Tinker's `Datum`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { recordRollouts } from '../../src/testing/exporter/index.ts'
import { openStore, runExport } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { cache } from './vllm.ts'

const python = join(cache, 'verifiers/bin/python')

describe.skipIf(cache === '' || !existsSync(python))('tinker 0.38.0 and atif 1.8.0', () => {
  let directory: string
  beforeEach(async () => {
    directory = tempDir()
  })

  it('read what is written for them', async () => {
    const store = await openStore(join(directory, 'data'))
    await recordRollouts(store, [
      { task: 'a', group: 'a', image: true },
      { task: 'b', group: 'b' },
    ])
    const out = join(directory, 'export')
    await runExport({ reader: store, exporter: 'atif', out, sideChannels: store.blobs, paddockVersion: '0.0.0' })
    await store.close()
    const test = join(import.meta.dirname, 'shapes_test.py')
    const { status, stderr } = spawnSync(python, ['-B', test, join(out, 'trajectories.jsonl')], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/Ran 2 tests[^]*\nOK\n/)
  })
})
