import { isPaddockError } from '../../core/index.ts'
import { type Finding, ok, problem } from './finding.ts'

/** The PostgreSQL database of the catalogue, where one is configured. Its URL is not told: it may hold a password. */
export async function catalogueFindings(url: string | null): Promise<readonly Finding[]> {
  if (url === null) return []
  const { probePostgresCatalogue } = await import('../../trajectory/index.ts')
  try {
    const { version, schema, known } = await probePostgresCatalogue(url)
    if (schema > known) {
      return [problem('catalogue', `PostgreSQL ${version}, schema ${schema}; this knows ${known}`, 'Update Paddock.')]
    }
    const state = schema === 0 ? 'nothing in it yet' : `schema ${schema} of ${known}`
    return [ok('catalogue', `PostgreSQL ${version}, ${state}`)]
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('catalogue', error.message, error.fix)]
  }
}
