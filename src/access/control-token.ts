import { randomBytes, timingSafeEqual } from 'node:crypto'
import { link, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../core/index.ts'

/** Name of the file in the data directory that holds the control token. */
export const tokenFileName = 'control-token'

/** The control token of a data directory: made at the first call, mode 0600, read afterwards. An empty file is replaced. */
export async function controlToken(directory: string): Promise<string> {
  const path = join(directory, tokenFileName)
  const known = await readFile(path, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  })
  if (known !== null && known.trim() !== '') return known.trim()
  // It has its name only when it is whole: a file that is cut off would lock everybody out.
  const unfinished = `${path}.${randomBytes(4).toString('hex')}.unfinished`
  const token = randomBytes(32).toString('base64url')
  try {
    await using file = await open(unfinished, 'wx', 0o600)
    await file.writeFile(`${token}\n`)
    await file.sync()
    if (known !== null) await rename(unfinished, path)
    else
      await link(unfinished, path).catch((error: unknown) => {
        if (hasCode(error, 'EEXIST')) throw error
        // A file system without hard links.
        return rename(unfinished, path)
      })
    return token
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    // Another process was first.
    return (await readFile(path, 'utf8')).trim()
  } finally {
    await rm(unfinished, { force: true })
  }
}

/** Compares in constant time, whatever the lengths. */
export function sameToken(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(given), 'hex'), Buffer.from(sha256(expected), 'hex'))
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
