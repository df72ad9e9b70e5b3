import type { Config } from '../../config/index.ts'
import { isLoopback, isPaddockError } from '../../core/index.ts'
import type { ObjectsStore } from '../../trajectory/index.ts'
import { bytes } from '../present/units.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** A warning where an object store is asked without TLS over a network. */
export function plainFindings(
  about: string,
  { name, store }: { readonly name: string; readonly store: ObjectsStore },
  what: string,
): readonly Finding[] {
  const endpoint = 's3' in store ? store.s3.endpoint : null
  const url = endpoint === null ? null : new URL(endpoint)
  if (url?.protocol !== 'http:' || isLoopback(url.hostname)) return []
  return [warning(about, `${name} is asked in plain HTTP: ${what} can be read on the way`, 'Name an https: endpoint.')]
}

/** The store of the blobs, where one is configured or the data directory has one. */
export async function blobsFindings({ store, blobs }: Pick<Config, 'store' | 'blobs'>): Promise<readonly Finding[]> {
  const { objectsStoreOf, probeBlobs } = await import('../../trajectory/index.ts')
  try {
    const found = await probeBlobs(store.directory, objectsStoreOf(blobs))
    if (found === null) return []
    const waiting = found.waitingBytes === 0 ? '' : `, ${bytes(found.waitingBytes)} wait in the data directory`
    return [ok('blobs', `${found.name} answers${waiting}`), ...plainFindings('blobs', found, 'blobs')]
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('blobs', error.message, error.fix)]
  }
}
