import { type Config, isLoopback, isPaddockError } from '../../core/index.ts'
import { bytes } from '../present/units.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** The object store of the blobs, where one is configured or the data directory has one. */
export async function blobsFindings({ store, blobs }: Pick<Config, 'store' | 'blobs'>): Promise<readonly Finding[]> {
  const { probeBlobs } = await import('../../trajectory/index.ts')
  try {
    const found = await probeBlobs(store.directory, blobs.s3)
    if (found === null) return []
    const { endpoint, bucket, prefix, waitingBytes } = found
    const where = `s3: ${bucket}/${prefix}`
    const waiting = waitingBytes === 0 ? '' : `, ${bytes(waitingBytes)} wait in the data directory`
    const isPlain = endpoint !== null && new URL(endpoint).protocol === 'http:'
    return [
      ok('blobs', `${where} answers${waiting}`),
      ...(isPlain && !isLoopback(new URL(endpoint).hostname)
        ? [
            warning(
              'blobs',
              `${where} is asked in plain HTTP: blobs can be read on the way`,
              'Name an https: endpoint.',
            ),
          ]
        : []),
    ]
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('blobs', error.message, error.fix)]
  }
}
