/** What is wrong with a catalogue: rows that were changed, and rows that are gone. */
import type { Database } from 'better-sqlite3'
import { catalogueTables, type CoveredTable } from '../catalogue/index.ts'
import { hasDigest, Statements } from '../sqlite/index.ts'
import type { Found } from './report.ts'

const tables: readonly CoveredTable[] = Object.values(catalogueTables)
const scopeOf = ({ name, scope }: CoveredTable): string => (scope === 'table' ? `'${name}'` : 'rollout')

/** Rollouts and tables (`runs`, `groups`, …) that do not have the rows that were counted when these came. */
function miscounted(db: Database): readonly string[] {
  const there = tables.map((table) => `SELECT ${scopeOf(table)} AS scope, digest FROM ${table.name}`)
  return new Statements(db)
    .all<{ scope: string }>(
      `WITH there AS (SELECT scope, count(*) AS count, total(digest) AS sum FROM (${there.join(' UNION ALL ')}) GROUP BY scope)
       SELECT coalesce(covered.scope, there.scope) AS scope FROM covered FULL JOIN there ON there.scope = covered.scope
       WHERE there.count IS NOT covered.count OR there.sum IS NOT CAST(covered.sum AS REAL) ORDER BY 1`,
    )
    .map(({ scope }) => scope)
}

/** Tells every row without its digest, and every rollout and table that has other rows than were counted. */
export function checkCatalogueRows(db: Database, found: Found): void {
  const statements = new Statements(db)
  for (const table of tables) {
    for (const row of statements.each<Record<string, unknown>>(`SELECT * FROM ${table.name}`)) {
      if (hasDigest(table, row)) continue
      const { rollout, id, task } = row
      const where = table.scope === 'rollout' ? `rollout ${String(rollout)}` : `${table.name} ${String(id ?? task)}`
      found(where, `a row of ${table.name} does not have its digest: it was changed`)
    }
  }
  const names = new Set(tables.map(({ name }) => name))
  for (const scope of miscounted(db)) {
    found(names.has(scope) ? scope : `rollout ${scope}`, 'rows are missing from the catalogue, or were changed')
  }
}
