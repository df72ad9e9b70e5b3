import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageDirectory } from './version.ts'

/**
 * The absolute path of the tasks that a command line names. The examples (`examples/tasks/…`) come with the package, so
 * they are found in it where the working directory has none.
 */
export function taskPlace(cwd: string, text: string): string {
  const own = resolve(cwd, text)
  if (!/^(\.\/)?examples\/tasks\//.test(text) || existsSync(own)) return own
  const shipped = fileURLToPath(new URL(text, packageDirectory))
  return existsSync(shipped) ? shipped : own
}
