import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { tokenFileName } from './token.ts'

/** Name of the file in the data directory that says where its owner's control API is. */
export const ownerFileName = 'control.json'

const ownerFile = z.object({ pid: z.int(), origin: z.url() })

/** The control API of the process that owns a data directory. */
export interface OwnerAddress {
  readonly pid: number
  readonly origin: string
  readonly token: string
}

/** Tells other processes where the control API of this data directory is. */
export async function announceOwner(directory: string, owner: Omit<OwnerAddress, 'token'>): Promise<void> {
  await writeFile(join(directory, ownerFileName), `${JSON.stringify({ pid: owner.pid, origin: owner.origin })}\n`, {
    mode: 0o600,
  })
}

export async function withdrawOwner(directory: string): Promise<void> {
  await rm(join(directory, ownerFileName), { force: true })
}

/** The owner's control API, if the owner offers one and it answers; else null. */
export async function findOwner(directory: string, signal?: AbortSignal): Promise<OwnerAddress | null> {
  try {
    const { pid, origin } = ownerFile.parse(JSON.parse(await readFile(join(directory, ownerFileName), 'utf8')))
    const token = (await readFile(join(directory, tokenFileName), 'utf8')).trim()
    const limit = AbortSignal.timeout(2000)
    const answer = await fetch(`${origin}/healthz`, { signal: signal ? AbortSignal.any([signal, limit]) : limit })
    return answer.ok ? { pid, origin, token } : null
  } catch {
    // No file, no permission, a stale file of a dead owner: there is nobody to talk to.
    return null
  }
}
