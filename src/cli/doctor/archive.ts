import type { Config } from '../../config/index.ts'
import { isPaddockError } from '../../core/index.ts'
import { plural } from '../present/units.ts'
import { plainFindings } from './blobs.ts'
import { type Finding, ok, problem } from './finding.ts'

/** The archive of finished sessions, where one is configured or the data directory has one. */
export async function archiveFindings({
  store,
  archive,
}: Pick<Config, 'store' | 'archive'>): Promise<readonly Finding[]> {
  const { objectsStoreOf, probeArchive } = await import('../../trajectory/index.ts')
  try {
    const found = await probeArchive(store.directory, objectsStoreOf(archive))
    if (found === null) return []
    const waiting = found.waiting === 0 ? '' : `, ${plural(found.waiting, 'closed session')} in the data directory`
    return [ok('archive', `${found.name} answers${waiting}`), ...plainFindings('archive', found, 'sessions')]
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('archive', error.message, error.fix)]
  }
}
