import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PaddockError, sha256 } from '../../core/index.ts'

/**
 * The public Debian image that is pulled where a registry answers, by digest; and the suite that debootstrap makes
 * where none does.
 */
export const debianReference =
  'debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716'
export const debianSuite = 'bookworm'

/** Files of the repository's `sandboxes/` folder, wherever this module was installed. */
export function sandboxSource(path: string): string {
  let at = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(at, 'sandboxes', path))) {
    if (dirname(at) === at)
      throw new PaddockError('NOT_FOUND', `sandboxes/${path} is not part of this installation.`, {
        fix: 'Install the package again.',
      })
    at = dirname(at)
  }
  return readFileSync(join(at, 'sandboxes', path), 'utf8')
}

/** What an image is named after: a change of any part gives another name. */
export function digestOf(parts: readonly (string | Uint8Array)[]): string {
  return sha256(parts.map((part) => sha256(part)).join('\n'))
}

/** `paddock-base` or `paddock-debian`, with or without `:latest`; null: an image of somebody else. */
export function ownBase(reference: string): 'paddock-base' | 'debian' | null {
  const name = reference.toLowerCase().replace(/:latest$/, '')
  return name === 'paddock-base' ? name : name === 'paddock-debian' ? 'debian' : null
}
