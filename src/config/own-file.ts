import { access, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PaddockError } from '../core/index.ts'

/** A file of these names makes its folder a data directory or a task folder: what others wrote, and never code of ours. */
const foreignMarks = ['log.sqlite', 'catalogue.sqlite', 'task.toml', 'task.yaml'] as const

/**
 * Code that nobody named is run only where nobody else can have put it: the file and its folder belong to the caller, no
 * other user can write them, and neither a data directory nor a task folder is around them. Throws `CONFIG_UNTRUSTED`.
 */
export async function requireOwnFile(path: string): Promise<void> {
  const real = await realpath(path)
  for (const one of new Set([real, dirname(real), dirname(path)])) {
    const why = await foreign(one)
    if (why !== null) throw untrusted(path, `${one} ${why}`)
  }
  await requireOwnPlace(path)
}

/** Code below a data directory or a task folder is never run, whoever names it. Throws `CONFIG_UNTRUSTED`. */
export async function requireOwnPlace(path: string): Promise<void> {
  const real = await realpath(path).catch(() => path)
  const around = (await foreignFolder(dirname(path))) ?? (await foreignFolder(dirname(real)))
  if (around !== null) {
    throw new PaddockError(
      'CONFIG_UNTRUSTED',
      `${path} is not loaded: ${around} is a data directory or a task folder`,
      {
        fix: 'Move the file out of it.',
        data: { path },
      },
    )
  }
}

/** The data directory or task folder that a folder is or lies in; null for none. */
async function foreignFolder(directory: string): Promise<string | null> {
  for (const mark of foreignMarks) {
    if (await exists(join(directory, mark))) return directory
  }
  const parent = dirname(directory)
  return parent === directory ? null : foreignFolder(parent)
}

async function foreign(path: string): Promise<string | null> {
  const caller = process.geteuid?.()
  // Windows tells neither owners nor modes.
  if (caller === undefined) return null
  const { uid, gid, mode } = await stat(path)
  if (uid !== caller) return `belongs to user ${uid}, and you are ${caller}`
  if ((mode & 0o002) !== 0) return 'can be written by everybody'
  // A group of one's own, as Debian and Fedora give each user, has nobody else in it.
  if ((mode & 0o020) !== 0 && !(gid === caller && gid === process.getegid?.())) return `can be written by group ${gid}`
  return null
}

function untrusted(path: string, why: string): PaddockError {
  return new PaddockError('CONFIG_UNTRUSTED', `${path} is not loaded: ${why}`, { data: { path } })
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
