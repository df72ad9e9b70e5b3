import { describe, expect, test } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { damageStore, filled } from '../store/damage.ts'
import { sized } from './size.ts'

const seed = Number(process.env['SEED'] ?? 20_261_122)
const count = sized(500, 100)

describe(`${count} flips, cuts and removals each, seed ${seed}`, () => {
  test.each(['close', 'kill'] as const)(
    'of 50 sessions: each is named by fsck or harmless, and salvage keeps the rest (%s)',
    async (end) => {
      const base = tempDir()
      await filled(base, 50, end)
      const found = await damageStore(base, end === 'kill', { count, seed, salvageEvery: 5 })
      console.log(`${end}: ${found.reported} named, ${found.harmless} harmless`, found.byFile)
      expect(found.missed).toEqual([])
      expect(found.lost).toEqual([])
    },
  )
})
