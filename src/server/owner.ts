import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { liveOwner } from '../trajectory/index.ts'
import { tokenFileName } from './token.ts'

/** A live owner that is busy answers late, and without its answer its data directory is only locked. */
const answerMs = 15_000

/** The control API of the process that owns a data directory. */
export interface OwnerAddress {
  readonly pid: number
  readonly origin: string
  readonly token: string
}

/**
 * The control API of the live owner of a data directory; null where nobody owns it, or the owner offers no API that we
 * may use. `token`: the configured one; null: the one that the owner keeps in the directory.
 */
export async function findOwner(
  directory: string,
  token: string | null,
  signal?: AbortSignal,
): Promise<OwnerAddress | null> {
  const owner = liveOwner(directory)
  if (owner === null || owner.controlUrl === null) return null
  try {
    const key = token ?? (await readFile(join(directory, tokenFileName), 'utf8')).trim()
    const limit = AbortSignal.timeout(answerMs)
    const answer = await fetch(`${owner.controlUrl}/healthz`, {
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    })
    return answer.ok ? { pid: owner.pid, origin: owner.controlUrl, token: key } : null
  } catch {
    // No permission to read the token, or it does not answer: opening the store says who holds it.
    return null
  }
}
