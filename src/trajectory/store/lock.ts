/** One process owns a data directory. The lock names it, so that a lock of a dead owner is known for what it is. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'

/** Who owns a data directory. A pid alone may be reused; with the boot and its start time it is one process. */
export interface Owner {
  readonly pid: number
  readonly bootId: string
  /** Clock ticks after boot: field 22 of /proc/<pid>/stat, see proc_pid_stat(5). */
  readonly startTicks: string
  /** Milliseconds since the epoch. */
  readonly lockedAt: number
  /** Where the owner answers, if it does: set by {@link announceOwner}. */
  readonly controlUrl: string | null
}

/**
 * Takes the lock. Throws `STORE_LOCKED` with the pid of a live owner; a lock of a dead one is taken over.
 * Two takers are kept apart by a database transaction: the kernel ends it with its process, so it cannot go stale.
 */
export function takeLock(directory: string, lockedAt: number): Owner {
  const guard = new Database(join(directory, 'catalogue.sqlite'), { timeout: 5000 })
  try {
    guard.exec('BEGIN IMMEDIATE')
    const found = liveOwner(directory)
    if (found !== null) {
      const where = found.controlUrl === null ? '' : `, which answers at ${found.controlUrl}`
      throw new PaddockError('STORE_LOCKED', `${directory} is owned by process ${found.pid}${where}`, {
        data: { pid: found.pid, controlUrl: found.controlUrl },
        fix: `Stop process ${found.pid}, use its control API, or choose another --data directory.`,
      })
    }
    const owner: Owner = {
      pid: process.pid,
      bootId: bootId(),
      startTicks: startTicks(process.pid) ?? '',
      lockedAt,
      controlUrl: null,
    }
    writeOwner(directory, owner)
    guard.exec('COMMIT')
    return owner
  } finally {
    guard.close()
  }
}

/** Releases the lock if this owner still has it. */
export function releaseLock(directory: string, owner: Owner): void {
  const found = readOwner(directory)
  if (found !== null && sameProcess(found, owner)) rmSync(join(directory, 'lock'), { force: true })
}

/** The live owner of a data directory; null when nobody owns it. */
export function liveOwner(directory: string): Owner | null {
  const owner = readOwner(directory)
  return owner !== null && isAlive(owner) ? owner : null
}

/** Lets others find the control API of this process's store. Throws `STORE_LOCKED` when it is not the owner. */
export function announceOwner(directory: string, controlUrl: string): void {
  const owner = readOwner(directory)
  if (owner === null || owner.pid !== process.pid || !isAlive(owner)) {
    throw new PaddockError('STORE_LOCKED', `${directory} is not owned by this process`)
  }
  writeOwner(directory, { ...owner, controlUrl })
}

function writeOwner(directory: string, owner: Owner): void {
  const path = join(directory, 'lock')
  const unfinished = `${path}.${owner.pid}.tmp`
  writeFileSync(unfinished, `${JSON.stringify(owner)}\n`)
  renameSync(unfinished, path)
}

function readOwner(directory: string): Owner | null {
  let text: string
  try {
    text = readFileSync(join(directory, 'lock'), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  try {
    // Written whole by writeOwner; anything else is nobody's lock.
    return JSON.parse(text) as Owner
  } catch {
    return null
  }
}

function isAlive(owner: Owner): boolean {
  return owner.bootId === bootId() && owner.startTicks === startTicks(owner.pid)
}

function sameProcess(a: Owner, b: Owner): boolean {
  return a.pid === b.pid && a.bootId === b.bootId && a.startTicks === b.startTicks
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}

/** Null when there is no such process, or only its remains (state Z or X). */
function startTicks(pid: number): string | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
  // The command name stands in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null)
}
