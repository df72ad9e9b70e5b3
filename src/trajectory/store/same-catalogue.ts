/** A data directory whose catalogue is in PostgreSQL says which it is, in `catalogue.json`; one without has it beside its log. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Id, PaddockError } from '../../core/index.ts'

function fileOf(directory: string): string {
  return join(directory, 'catalogue.json')
}

/** Which PostgreSQL catalogue a data directory is of; null: its own. Throws `STORE_CORRUPT`. */
export function catalogueOf(directory: string): Id | null {
  const file = fileOf(directory)
  if (!existsSync(file)) return null
  const known: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof known === 'object' && known !== null && 'id' in known && typeof known.id === 'string') return known.id
  throw new PaddockError('STORE_CORRUPT', `${file} does not name a catalogue`)
}

/** Throws `CATALOGUE_OTHER` where a data directory is of another catalogue than the one that is given (null: none is). */
export function requireSameCatalogue(directory: string, given: Id | null): void {
  const known = catalogueOf(directory)
  if (known === given) return
  if (given === null) {
    throw new PaddockError(
      'CATALOGUE_OTHER',
      `the catalogue of ${directory} is in PostgreSQL, and none is configured`,
      {
        fix: 'Set `store.catalogue`, PADDOCK_CATALOGUE or --catalogue to its URL.',
      },
    )
  }
  if (known === null) {
    throw new PaddockError(
      'CATALOGUE_OTHER',
      `${directory} has a catalogue of its own, and one in PostgreSQL is configured`,
      {
        fix: 'Read it with `--catalogue none`; `paddock restore` makes a directory of it whose catalogue is in PostgreSQL.',
      },
    )
  }
  throw new PaddockError(
    'CATALOGUE_OTHER',
    `${directory} is of another catalogue in PostgreSQL than the one that is configured`,
  )
}

/** Writes down which catalogue a data directory is of. */
export function rememberCatalogue(directory: string, id: Id): void {
  const file = fileOf(directory)
  writeFileSync(`${file}.tmp`, `${JSON.stringify({ id })}\n`, { mode: 0o600 })
  renameSync(`${file}.tmp`, file)
}
