import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generatedPlace } from '../core/index.ts'
import { packageDirectory } from './version.ts'

/**
 * The absolute path of the tasks that a command line names; the place of generated ones (`records:0..9:1`) is as it is. The examples (`examples/tasks/…`) come with the package, so
 * they are found in it where the working directory has none.
 */
export function taskPlace(cwd: string, text: string): string {
  if (generatedPlace(text) !== null) return text
  const own = resolve(cwd, text)
  if (!/^(\.\/)?examples\/tasks\//.test(text) || existsSync(own)) return own
  const shipped = fileURLToPath(new URL(text, packageDirectory))
  return existsSync(shipped) ? shipped : own
}
