/**
 * One process owns a data directory. What keeps others out is an exclusive transaction on `owner.sqlite`, held for life:
 * a lock of the kernel, which ends with its process, and which holds in all pid and network namespaces of the machine.
 * Beside it `lock` says who the owner is.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import { makePrivate } from '../sqlite/index.ts'

/** Where an owner's control API is offered, and how. */
export interface OwnerListener {
  readonly host: string
  readonly port: number
  readonly tls: boolean
}

/** Who owns a data directory. */
export interface Owner {
  readonly pid: number
  /** Of the machine or container that the pid is of. */
  readonly host: string
  readonly bootId: string
  /** Clock ticks after boot: field 22 of /proc/<pid>/stat, see proc_pid_stat(5). */
  readonly startTicks: string
  /** Milliseconds since the epoch. */
  readonly lockedAt: number
  /** The work that it holds the directory for and takes no runs beside, such as `view --annotate`; null: it will offer its control API. */
  readonly work: string | null
  /** Where the owner answers, if it does: set by {@link announceOwner}. */
  readonly controlUrl: string | null
  /** Where others than this machine's processes find it; null: nobody said. */
  readonly listener: OwnerListener | null
}

/**
 * The locks of this process by directory. `owner.sqlite` is opened once per process, for whoever closes any descriptor
 * of a file gives up all locks that its process holds on it (fcntl(2)).
 */
const held = new Map<string, Database.Database>()

/** Another process that only looks whether the lock is free has it for an instant. */
const glanceMs = 200

/** Takes the lock. Throws `STORE_LOCKED` with who owns the directory, `STORE_FAILED`. */
export function takeLock(directory: string, lockedAt: number, work: string | null = null): Owner {
  const lock = held.has(directory) ? null : exclusive(directory)
  if (lock === null) throw lockedBy(directory)
  held.set(directory, lock)
  const owner: Owner = {
    pid: process.pid,
    host: hostname(),
    bootId: bootId(),
    startTicks: startTicks(process.pid),
    lockedAt,
    work,
    controlUrl: null,
    listener: null,
  }
  try {
    writeOwner(directory, owner)
    return owner
  } catch (error) {
    releaseLock(directory)
    throw error
  }
}

/** Releases the lock of this process. */
export function releaseLock(directory: string): void {
  const lock = held.get(directory)
  if (lock === undefined) return
  rmSync(join(directory, 'lock'), { force: true })
  held.delete(directory)
  lock.close()
}

/**
 * The live owner of a data directory; null when nobody owns it. An owner whose record cannot be read is `unknown`
 * (pid 0).
 */
export function liveOwner(directory: string): Owner | null {
  if (!held.has(directory) && isFree(directory)) return null
  return readOwner(directory) ?? unknown
}

/** Lets others find the control API of this process's store. Throws `STORE_LOCKED` when it is not the owner. */
export function announceOwner(directory: string, controlUrl: string, listener: OwnerListener | null = null): void {
  const owner = held.has(directory) ? readOwner(directory) : null
  if (owner === null) throw new PaddockError('STORE_LOCKED', `${directory} is not owned by this process`)
  writeOwner(directory, { ...owner, controlUrl, listener })
}

const unknown: Owner = {
  pid: 0,
  host: '',
  bootId: '',
  startTicks: '',
  lockedAt: 0,
  work: null,
  controlUrl: null,
  listener: null,
}

function fileOf(directory: string): string {
  return join(directory, 'owner.sqlite')
}

/** The lock, held until it is closed; null: somebody else has it. */
function exclusive(directory: string): Database.Database | null {
  const file = fileOf(directory)
  makePrivate(file)
  const lock = new Database(file, { timeout: glanceMs })
  try {
    // Nothing is ever committed: the file stays empty, and no journal of it is left behind by a kill.
    lock.pragma('journal_mode = MEMORY')
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (isBusy(error)) return null
    throw error
  }
}

/** Whether nobody has the lock. */
function isFree(directory: string): boolean {
  let glance: Database.Database
  try {
    glance = new Database(fileOf(directory), { readonly: true, fileMustExist: true, timeout: 0 })
  } catch {
    return true
  }
  try {
    glance.prepare('SELECT count(*) FROM sqlite_master').get()
    return true
  } catch (error) {
    // A damaged file says nothing about its lock: taking it will.
    return !isBusy(error)
  } finally {
    glance.close()
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^SQLITE_(BUSY|LOCKED)/.test(String(error.code))
}

function lockedBy(directory: string): PaddockError {
  const { pid, host, controlUrl, work } = readOwner(directory) ?? unknown
  if (work !== null) return ownerBusy(directory, { pid, work })
  const who = pid === 0 ? 'another process' : `process ${pid} on ${host}`
  const where = controlUrl === null ? '' : `, which answers at ${controlUrl}`
  return new PaddockError('STORE_LOCKED', `${directory} is owned by ${who}${where}`, {
    data: { pid, host, controlUrl },
    fix: `Stop ${who}, use its control API, or choose another --data directory.`,
  })
}

/** The refusal that names the command which holds a directory and offers no control API, and how to go on. */
export function ownerBusy(
  directory: string,
  { pid, work }: { readonly pid: number; readonly work: string },
): PaddockError {
  const isViewer = work === 'view --annotate'
  const what = isViewer ? `the viewer (pid ${pid}) annotates` : `\`paddock ${work}\` (pid ${pid}) works on`
  return new PaddockError('STORE_LOCKED', `${what} ${directory}`, {
    data: { pid, work },
    fix: isViewer
      ? 'End it, or start it without --annotate.'
      : 'Wait until it ends, or choose another --data directory.',
  })
}

function writeOwner(directory: string, owner: Owner): void {
  const path = join(directory, 'lock')
  const unfinished = `${path}.${owner.pid}.tmp`
  writeFileSync(unfinished, `${JSON.stringify(owner)}\n`, { mode: 0o600 })
  renameSync(unfinished, path)
}

/** Null: there is no record, or none that can be read. It is told to people; it decides nothing. */
function readOwner(directory: string): Owner | null {
  try {
    const owner: unknown = JSON.parse(readFileSync(join(directory, 'lock'), 'utf8'))
    // Written whole by writeOwner.
    return typeof owner === 'object' && owner !== null && 'pid' in owner ? { ...unknown, ...(owner as Owner) } : null
  } catch {
    return null
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}

function startTicks(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The command name stands in parentheses and may hold spaces and parentheses itself.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}
