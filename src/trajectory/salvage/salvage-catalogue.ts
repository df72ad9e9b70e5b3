/** The rows of a catalogue that are whole, in a new one. */
import { isDeepStrictEqual } from 'node:util'
import type { Database } from 'better-sqlite3'
import { catalogueMigrations, catalogueTables, type CoveredTable } from '../catalogue/index.ts'
import { asStoreError, schemaVersion, Statements } from '../sqlite/index.ts'
import { copyRows } from './copy-rows.ts'

/** What came over. */
export interface SalvagedCatalogue {
  readonly lost: readonly string[]
  /** Rollouts that came over with fewer starts, ends, taints, labels or verdicts than they had. */
  readonly incomplete: readonly string[]
}

/** Copies what is whole; a row whose run, group, task or rollout did not come over stays behind with it. */
export function salvageCatalogue(from: Database, into: Database): SalvagedCatalogue {
  const lost: string[] = []
  const statements = new Statements(into)
  const missing = (table: string, column: string, key: unknown): string | null =>
    statements.get(`SELECT 1 FROM ${table} WHERE ${column} = ?`, key) === undefined
      ? `its ${column} did not come over`
      : null
  const tables: readonly CoveredTable[] = Object.values(catalogueTables)
  for (const table of tables) {
    if (isNewer(from, table)) continue
    const { damaged } = copyRows(from, into, table, (row) => {
      if (table.scope === 'rollout') return missing('rollouts', 'id', row['rollout'])
      if (table.name === 'groups') return missing('runs', 'id', row['run']) ?? missing('tasks', 'task', row['task'])
      if (table.name === 'rollouts') return missing('groups', 'id', row['group'])
      return null
    })
    lost.push(...damaged)
  }
  const rollouts = statements.all<{ id: string }>('SELECT id FROM rollouts').map(({ id }) => id)
  return { lost, incomplete: incompleteOf(from, statements, rollouts, lost) }
}

/** A table that came with a schema which the damaged store does not have yet. */
function isNewer(from: Database, table: CoveredTable): boolean {
  try {
    const known = from.prepare(`SELECT 1 FROM sqlite_master WHERE name = ?`).get(table.name) !== undefined
    return !known && schemaVersion(from) < catalogueMigrations.length
  } catch {
    return false
  }
}

interface Counted {
  readonly scope: string
  readonly count: number
  readonly sum: number
}

/** Rollouts that have other rows than they had; all of them where nobody knows what they had. */
function incompleteOf(
  from: Database,
  into: Statements,
  rollouts: readonly string[],
  lost: string[],
): readonly string[] {
  const text = 'SELECT scope, count, sum FROM covered'
  const now = new Map(into.all<Counted>(text).map((counted) => [counted.scope, counted]))
  try {
    const before = new Map(new Statements(from).all<Counted>(text).map((counted) => [counted.scope, counted]))
    return rollouts.filter((id) => !isDeepStrictEqual(before.get(id), now.get(id)))
  } catch (error) {
    lost.push(`what rollouts had cannot be read: ${asStoreError(error, 'catalogue.sqlite').message}`)
    return rollouts
  }
}
