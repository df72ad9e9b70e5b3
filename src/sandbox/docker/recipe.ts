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
    if (dirname(at) === at) throw new PaddockError('NOT_FOUND', `sandboxes/${path} is not part of this installation.`)
    at = dirname(at)
  }
  return readFileSync(join(at, 'sandboxes', path), 'utf8')
}

/** What an image is named after: a change of any part gives another name. */
export function digestOf(parts: readonly (string | Uint8Array)[]): string {
  return sha256(parts.map((part) => sha256(part)).join('\n'))
}

/** `FROM paddock-base` and `FROM paddock-debian`, with or without `:latest`. */
const ownBase = /^(\s*FROM\s+(?:--platform=\S+\s+)?)(paddock-base|paddock-debian)(?::latest)?(?=\s|$)/gim

/** Which of our own images a Dockerfile starts from. */
export function ownBasesOf(dockerfile: string): readonly ('paddock-base' | 'paddock-debian')[] {
  const names = [...dockerfile.matchAll(ownBase)].map((match) => match[2]?.toLowerCase())
  return [...new Set(names)].filter((name) => name === 'paddock-base' || name === 'paddock-debian')
}

/** The same Dockerfile with the tags that those names mean on this machine. */
export function withBases(dockerfile: string, tags: ReadonlyMap<string, string>): string {
  return dockerfile.replaceAll(
    ownBase,
    (_all, before: string, name: string) => before + (tags.get(name.toLowerCase()) ?? name),
  )
}

/** Images of others that a Dockerfile starts from: no earlier stage, none of ours, and no name with a variable in it. */
export function othersBasesOf(dockerfile: string): readonly string[] {
  const stages = new Set(['scratch', 'paddock-base', 'paddock-debian'])
  const found: string[] = []
  for (const [, base = '', alias] of dockerfile.matchAll(fromLine)) {
    if (!stages.has(base.toLowerCase().replace(/:latest$/, '')) && !base.includes('$')) found.push(base)
    if (alias !== undefined) stages.add(alias.toLowerCase())
  }
  return [...new Set(found)]
}

const fromLine = /^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/gim
