import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { damageStore, filled } from './damage.ts'

const seed = 20_261_122

describe('damage of a store', () => {
  test.each(['close', 'kill'] as const)('is named or harmless, and salvage keeps the rest (%s)', async (end) => {
    const base = await mkdtemp(join(tmpdir(), 'paddock-damaged-'))
    await filled(base, 12, end)
    const found = await damageStore(base, end === 'kill', { count: 24, seed, salvageEvery: 6 })
    expect(found.missed).toEqual([])
    expect(found.lost).toEqual([])
    expect(found.reported).toBeGreaterThan(8)
    await rm(base, { recursive: true })
  })
})
