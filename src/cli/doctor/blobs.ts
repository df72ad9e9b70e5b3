import { type Config, isLoopback, isPaddockError } from '../../core/index.ts'
import { bytes } from '../present/units.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** A warning where an object store is asked without TLS over a network. */
export function plainFindings(about: string, endpoint: string | null, what: string): readonly Finding[] {
  const url = endpoint === null ? null : new URL(endpoint)
  if (url?.protocol !== 'http:' || isLoopback(url.hostname)) return []
  return [warning(about, what, 'Name an https: endpoint.')]
}

/** The object store of the blobs, where one is configured or the data directory has one. */
export async function blobsFindings({ store, blobs }: Pick<Config, 'store' | 'blobs'>): Promise<readonly Finding[]> {
  const { probeBlobs } = await import('../../trajectory/index.ts')
  try {
    const found = await probeBlobs(store.directory, blobs.s3)
    if (found === null) return []
    const { endpoint, bucket, prefix, waitingBytes } = found
    const where = `s3: ${bucket}/${prefix}`
    const waiting = waitingBytes === 0 ? '' : `, ${bytes(waitingBytes)} wait in the data directory`
    return [
      ok('blobs', `${where} answers${waiting}`),
      ...plainFindings('blobs', endpoint, `${where} is asked in plain HTTP: blobs can be read on the way`),
    ]
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('blobs', error.message, error.fix)]
  }
}
