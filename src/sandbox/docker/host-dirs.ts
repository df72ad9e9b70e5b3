import { randomBytes } from 'node:crypto'
import { thisOwner } from '../../core/index.ts'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Where sockets live: `/run/paddock` for root, else below `$XDG_RUNTIME_DIR` or the temporary directory. Closed to other
 * users, so that the sockets inside can be open to every uid of a relay. Short, because a socket path has 107 bytes.
 */
export function runtimeDirectory(uid = process.getuid?.() ?? 0, env: NodeJS.ProcessEnv = process.env): string {
  const directory =
    uid === 0
      ? '/run/paddock'
      : env['XDG_RUNTIME_DIR'] === undefined
        ? join(tmpdir(), `paddock-${uid}`)
        : join(env['XDG_RUNTIME_DIR'], 'paddock')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}

/** A directory with an owner mark beside it (`<path>.owner`), which {@link SandboxProvider.sweep} reads. */
export interface OwnedDirectory {
  readonly id: string
  readonly path: string
  remove(): void
}

/** A short-lived directory of this process in `parent`. */
export function ownedDirectory(parent: string): OwnedDirectory {
  mkdirSync(parent, { recursive: true, mode: 0o700 })
  const id = randomBytes(5).toString('hex')
  const path = join(parent, id)
  writeFileSync(`${path}.owner`, thisOwner())
  mkdirSync(path, { mode: 0o755 })
  return { id, path, remove: () => removeOwned(path) }
}

/** Removes the directory first and its mark last, so that a crash in between is still found. */
export function removeOwned(path: string): void {
  rmSync(path, { recursive: true, force: true })
  rmSync(`${path}.owner`, { force: true })
}

/** Where images and bundles are put together; big, hence not in the runtime directory. */
export function workDirectory(): string {
  const uid = process.getuid?.() ?? 0
  const directory = join(tmpdir(), `paddock-work-${uid}`)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}

/** Like {@link ownedDirectory}, below {@link workDirectory}. */
export function ownedWorkDirectory(): OwnedDirectory {
  return ownedDirectory(workDirectory())
}
