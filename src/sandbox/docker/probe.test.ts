import { describe, expect, it } from 'vitest'
import { sharedProblems } from './probe.ts'

describe('what a daemon shares with others', () => {
  const now = Date.parse('2026-01-01T12:00:00Z')
  it('is told before it runs out or goes wrong, each with its fix', () => {
    const fine = { networks: 3, daemonTime: '2026-01-01T12:00:04.123456789Z', now }
    expect(sharedProblems(fine)).toEqual([])
    expect(sharedProblems({ ...fine, daemonTime: null })).toEqual([])
    const bad = sharedProblems({ networks: 29, daemonTime: '2026-01-01T11:59:00+00:00', now })
    expect(bad.map(({ code, weight }) => [code, weight])).toEqual([
      ['address_pools', 'warning'],
      ['clock', 'warning'],
    ])
    expect(bad[1]?.what).toContain('60 s')
    expect(bad.every(({ fix }) => fix.length > 10)).toBe(true)
  })
})
