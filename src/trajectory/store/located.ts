import { type LogReads, withElsewhere } from '../archive/index.ts'
import { recordedElsewhere } from '../catalogue/index.ts'
import type { CatalogueReader, RecorderReader } from '../contract/index.ts'
import { homeOf } from './shared.ts'

/**
 * Reads of the log of a data directory that shares its catalogue: of a rollout that another one recorded they read its archive, or say
 * where it is instead of that it has no sessions.
 */
export function located(
  log: RecorderReader & Pick<LogReads, 'unpack' | 'unpackEvents'>,
  catalogue: CatalogueReader,
  directory: string,
): RecorderReader {
  return withElsewhere(log, catalogue, { directory, home: homeOf(directory), elsewhere: recordedElsewhere })
}
