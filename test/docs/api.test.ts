/**
 * What the package exports changes on purpose only: `npx vitest run test/docs/api.test.ts -u` writes the report anew, and a
 * removed or changed name is a line of CHANGELOG.md.
 */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiReports } from './api.ts'

describe('docs/reference/api', () => {
  const reports = apiReports()
  it.each([...reports.keys()])('%s.d.ts has every name that is exported, with its signature', async (door) => {
    const report = reports.get(door) ?? ''
    expect(report.match(/^export /gm)?.length).toBeGreaterThan(4)
    await expect(report).toMatchFileSnapshot(join(import.meta.dirname, `../../docs/reference/api/${door}.d.ts`))
  })
})
