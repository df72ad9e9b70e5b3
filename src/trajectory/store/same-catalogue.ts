/** A data directory whose catalogue is in PostgreSQL says which it is, in `catalogue.json`; one without has it beside its log. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type Id, PaddockError } from '../../core/index.ts'
import type { KnownHistory } from './history.ts'

function fileOf(directory: string): string {
  return join(directory, 'catalogue.json')
}

const written = z.object({
  id: z.string(),
  history: z.object({ timeline: z.int(), synchronous: z.boolean(), rewound: z.int() }).nullable().default(null),
})

function read(directory: string): z.output<typeof written> | null {
  const file = fileOf(directory)
  if (!existsSync(file)) return null
  const found = written.safeParse(JSON.parse(readFileSync(file, 'utf8')))
  if (found.success) return found.data
  throw new PaddockError('STORE_CORRUPT', `${file} does not name a catalogue`)
}

/** Which PostgreSQL catalogue a data directory is of; null: its own. Throws `STORE_CORRUPT`. */
export function catalogueOf(directory: string): Id | null {
  return read(directory)?.id ?? null
}

/** What was known of its history; null: nothing. */
export function historyOf(directory: string): KnownHistory | null {
  return read(directory)?.history ?? null
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
  write(directory, { id, history: null })
}

/** Writes down what the history of its catalogue is. */
export function rememberHistory(directory: string, history: KnownHistory): void {
  const known = read(directory)
  if (known !== null) write(directory, { ...known, history })
}

function write(directory: string, known: z.output<typeof written>): void {
  const file = fileOf(directory)
  writeFileSync(`${file}.tmp`, `${JSON.stringify(known)}\n`, { mode: 0o600 })
  renameSync(`${file}.tmp`, file)
}
