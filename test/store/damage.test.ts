import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openReader, salvage } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { damageStore, filled } from './damage.ts'

const seed = 20_261_122

describe('damage of a store', () => {
  test.each(['close', 'kill'] as const)('is named or harmless, and salvage keeps the rest (%s)', async (end) => {
    const base = tempDir()
    await filled(base, 12, end)
    const found = await damageStore(base, end === 'kill', { count: 24, seed, salvageEvery: 6 })
    expect(found.missed).toEqual([])
    expect(found.lost).toEqual([])
    expect(found.reported).toBeGreaterThan(8)
  })

  test('a killed store whose journal is gone: what went on is named as cut, and its rollout is tainted', async () => {
    const base = tempDir()
    await filled(base, 3, 'kill')
    const journals = (await readdir(base)).filter((file) => file.includes('-journal-'))
    expect(journals.length).toBeGreaterThan(0)
    for (const file of journals) await rm(join(base, file))
    const into = `${base}-salvaged`
    const { sessions, tainted, lost } = await salvage(base, into)
    expect(lost.join('\n')).toContain('journal')
    await using reader = await openReader(into)
    const goingOn = (await reader.catalogue.rollouts({})).filter(({ slot }) => slot === 2)
    expect(tainted).toEqual(goingOn.map(({ id }) => id))
    expect(goingOn.map(({ taints }) => taints)).toEqual([['store_damage']])
    expect(sessions.cut.map(({ rollout }) => rollout)).toEqual(goingOn.map(({ id }) => id))
    expect(sessions.whole).toBe(2)
    await rm(into, { recursive: true })
  })
})
