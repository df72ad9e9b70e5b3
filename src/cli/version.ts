import { readFileSync } from 'node:fs'
import { PaddockError } from '../core/index.ts'

/** The nearest directory above that holds our package.json: the checkout, or the installed package. */
function packageRoot(): URL {
  for (const up of ['../../', '../../../']) {
    const root = new URL(up, import.meta.url)
    try {
      readFileSync(new URL('package.json', root))
      return root
    } catch {
      // Compiled code lies one directory deeper.
    }
  }
  throw new PaddockError('INTERNAL', `no package.json above ${import.meta.url}`)
}

/** Where the package's own files (engine, sandboxes, examples) are. */
export const packageDirectory = packageRoot()

const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', packageDirectory), 'utf8'))

/** The package's version. */
export const version: string =
  typeof manifest === 'object' && manifest !== null && 'version' in manifest && typeof manifest.version === 'string'
    ? manifest.version
    : '0.0.0'
