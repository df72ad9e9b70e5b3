import { randomUUID } from 'node:crypto'
import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import { insertOf, rowDigest, Statements, whole } from '../sqlite/index.ts'
import { identityTable } from './schema.ts'

/** Which log this is; a new one gets a name. Throws `STORE_CORRUPT`. */
export function logIdentity(db: Database): string {
  const known = knownIdentity(db)
  if (known !== null) return known
  const id = randomUUID()
  new Statements(db).run(insertOf(identityTable), id, rowDigest([id]))
  return id
}

/** Null: this log has no name yet. Throws `STORE_CORRUPT`. */
export function knownIdentity(db: Database): string | null {
  const rows = new Statements(db).all<{ readonly id: string }>('SELECT * FROM identity')
  const [row] = rows
  if (rows.length > 1) throw new PaddockError('STORE_CORRUPT', `${db.name} has ${rows.length} names`)
  return row === undefined ? null : whole(identityTable, row).id
}
