import { type Config, isPaddockError } from '../../core/index.ts'
import { plural } from '../present/units.ts'
import { plainFindings } from './blobs.ts'
import { type Finding, ok, problem } from './finding.ts'

/** The archive of finished sessions, where one is configured or the data directory has one. */
export async function archiveFindings({
  store,
  archive,
}: Pick<Config, 'store' | 'archive'>): Promise<readonly Finding[]> {
  const { archiveStoreOf, probeArchive } = await import('../../trajectory/index.ts')
  try {
    const found = await probeArchive(store.directory, archiveStoreOf(archive))
    if (found === null) return []
    const waiting = found.waiting === 0 ? '' : `, ${plural(found.waiting, 'closed session')} in the data directory`
    const endpoint = 's3' in found.store ? found.store.s3.endpoint : null
    return [
      ok('archive', `${found.name} answers${waiting}`),
      ...plainFindings('archive', endpoint, `${found.name} is asked in plain HTTP: sessions can be read on the way`),
    ]
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('archive', error.message, error.fix)]
  }
}
