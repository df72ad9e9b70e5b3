import { describe, expect, test } from 'vitest'
import { compareTables, exact, math, regex } from '../rules.ts'
import { sqlPresets } from '../sql/index.ts'
import { RulePool } from './pool.ts'

const slow = { id: 1, name: 'regex', args: [/^(a+)+$/u] } as const
const quick = { id: 2, name: 'exact', args: ['x'] } as const
const hostile = `${'a'.repeat(60)}!`

describe('rules in threads', () => {
  test('the loop turns while an answer is compared', async () => {
    const pool = new RulePool({ threads: 1, deadlineMs: 500 })
    let turns = 0
    const ended = pool.run({ rule: slow, answer: hostile }).catch((error: unknown) => error)
    const watch = setInterval(() => (turns += 1), 1)
    expect(await ended).toMatchObject({ code: 'RULE_FAILED', message: expect.stringContaining('longer than 500 ms') })
    clearInterval(watch)
    expect(turns).toBeGreaterThan(0)
  })

  test('an answer that takes too long has no value, and costs no other its own', async () => {
    const pool = new RulePool({ threads: 1, deadlineMs: 500 })
    const asked = [slow, quick, quick, slow, quick].map((rule) =>
      pool.run({ rule, answer: rule === slow ? hostile : 'x' }).then(
        ({ value }) => value,
        (error: unknown) => (error as { code: string }).code,
      ),
    )
    expect(await Promise.all(asked)).toEqual(['RULE_FAILED', 1, 1, 'RULE_FAILED', 1])
  })

  test('arguments that no thread can receive are an error, and the thread stays', async () => {
    const pool = new RulePool({ threads: 1 })
    const odd = { id: 4, name: 'exact', args: [() => 'x'] } as unknown as typeof quick
    await expect(pool.run({ rule: odd, answer: 'x' })).rejects.toMatchObject({ code: 'RULE_FAILED' })
    expect(await pool.run({ rule: quick, answer: 'x' })).toMatchObject({ value: 1 })
  })

  test('rules are data: what happens to their arguments afterwards changes nothing', async () => {
    const golds = ['x']
    const rule = exact(golds)
    golds[0] = 'y'
    expect([await rule('x'), await rule('y')]).toMatchObject([{ value: 1 }, { value: 0 }])
  })

  test('the loop turns while tables are compared whose rows no order pairs', async () => {
    const rows = (shift: number) =>
      Array.from({ length: 1000 }, (_, i) => [1 + ((i + shift) % 7) * 1e-12, 1000.5 + ((i * 7919) % 1000)])
    const table = (shift: number) => ({ columns: ['a', 'b'], rows: rows(shift) })
    const o = { semantics: { ...sqlPresets.strict, rows: 'bag' }, goldSql: '', conditionColumns: null } as const
    let turns = 0
    const watch = setInterval(() => (turns += 1), 1)
    expect(await compareTables(table(0), table(3), o)).toMatchObject({ equal: true })
    clearInterval(watch)
    expect(turns).toBeGreaterThan(0)
    expect(await compareTables(table(0), { ...table(0), rows: rows(0).slice(1) }, o)).toMatchObject({ equal: false })
  })

  test('400 at once, slow ones among them: every value is right', async () => {
    const terms = Array.from({ length: 12 }, (_, i) => `\\sqrt{${i + 2}}`)
    const asked = Array.from({ length: 400 }, (_, i) => {
      if (i % 4 === 0)
        return { rule: math(`\\{${terms.join(',')}\\}`), answer: `\\{${terms.toReversed().join(',')}\\}` }
      if (i % 4 === 1) return { rule: regex(/^\w+ \d+$/), answer: `item ${i}` }
      return { rule: math(`\\frac{${i}}{7}`), answer: i % 4 === 2 ? `${2 * i}/14` : `${i}/8` }
    })
    const results = await Promise.all(asked.map(({ rule, answer }) => rule(answer)))
    expect(results.map(({ value }) => value)).toEqual(asked.map((_, i) => (i % 4 === 3 ? 0 : 1)))
  })
})
