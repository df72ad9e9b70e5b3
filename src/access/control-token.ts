import { randomBytes, timingSafeEqual } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../core/index.ts'

/** Name of the file in the data directory that holds the control token. */
export const tokenFileName = 'control-token'

/** The control token of a data directory: made at the first call, mode 0600, read afterwards. */
export async function controlToken(directory: string): Promise<string> {
  const path = join(directory, tokenFileName)
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      const token = randomBytes(32).toString('base64url')
      await file.writeFile(`${token}\n`)
      await file.sync()
      return token
    } finally {
      await file.close()
    }
  } catch (error) {
    if (!isExists(error)) throw error
    return (await readFile(path, 'utf8')).trim()
  }
}

/** Compares in constant time, whatever the lengths. */
export function sameToken(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(given), 'hex'), Buffer.from(sha256(expected), 'hex'))
}

function isExists(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST'
}
