import { mkdir, readdir, rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Clock, systemClock } from '../../core/index.ts'
import { releaseLock, takeLock } from './lock.ts'

/** What a data directory records in. */
const recorded = /^(log\.sqlite|catalogue\.sqlite|blobs$)/

/**
 * Moves what a data directory that nobody owns has recorded into another folder of the same file system, which is a data directory to
 * read from afterwards; the next owner begins anew. One that was cut off goes on when it is called again. Throws `STORE_LOCKED`.
 */
export async function setAside(directory: string, into: string, clock: Clock = systemClock): Promise<void> {
  const from = resolve(directory)
  takeLock(from, clock.now())
  try {
    await mkdir(into, { recursive: true, mode: 0o700 })
    for (const name of (await readdir(from)).filter((one) => recorded.test(one))) {
      await rename(join(from, name), join(into, name))
    }
  } finally {
    releaseLock(from)
  }
}
