/** A data directory whose catalogue, queue and trainer's book are in PostgreSQL. */
import { hostname } from 'node:os'
import { type Id, PaddockError } from '../../core/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import { knownIdentity, logMigrations } from '../recorder/index.ts'
import { openForReading } from '../sqlite/index.ts'
import { HistoryGuard } from './history.ts'
import { openPostgresCatalogue, type PostgresCatalogue } from './postgres.ts'
import { catalogueOf, historyOf, rememberCatalogue, rememberHistory, requireSameCatalogue } from './same-catalogue.ts'
import { storeFiles } from './same-log.ts'

/** By the identity of its log, which is named by now. Throws `STORE_CORRUPT`. */
export function homeOf(directory: string): Id {
  const { log } = storeFiles(directory)
  const db = openForReading(log, logMigrations)
  try {
    const id = knownIdentity(db)
    if (id === null) throw new PaddockError('STORE_CORRUPT', `${log} has no name`)
    return id
  } finally {
    db.close()
  }
}

/** A catalogue with what its owner may watch. */
export interface SharedCatalogue extends PostgresCatalogue {
  /** How often the database went on from a moment in the past. */
  readonly rewound: () => number
}

/**
 * For the owner. A directory that has runs of its own does not change to another catalogue: `CATALOGUE_OTHER`. Throws
 * `CATALOGUE_REWOUND` where the database was rewound since it was open, once. `onRewound`: it is rewound while it is open.
 */
export async function openShared(
  directory: string,
  url: string,
  onRewound: (error: PaddockError) => void,
): Promise<SharedCatalogue> {
  const home = { id: homeOf(directory), name: `${directory} on ${hostname()}` }
  const guard = new HistoryGuard(onRewound)
  const opened = await openPostgresCatalogue({ url, home, guard })
  try {
    if (catalogueOf(directory) === null && !hasRuns(directory)) rememberCatalogue(directory, opened.id)
    requireSameCatalogue(directory, opened.id)
    guard.arm(historyOf(directory), (known) => rememberHistory(directory, known))
    return { ...opened, rewound: () => guard.rewound }
  } catch (error) {
    await opened.close()
    throw error
  }
}

function hasRuns(directory: string): boolean {
  const db = openForReading(storeFiles(directory).catalogue, catalogueMigrations)
  try {
    return db.prepare('SELECT 1 FROM runs LIMIT 1').get() !== undefined
  } finally {
    db.close()
  }
}
