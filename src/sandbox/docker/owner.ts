import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Who made an object: `<pid>:<boot id>:<start time>`. The start time (field 22 of /proc/<pid>/stat, proc(5)) tells a
 * process from a later one with the same number, the boot id tells this uptime from an earlier one.
 */
export function thisOwner(): string {
  return `${process.pid}:${bootId()}:${startTime(process.pid) ?? '0'}`
}

/** False only when that process is certainly gone (a zombie counts as gone). What cannot be read is taken as alive. */
export function isOwnerAlive(owner: string): boolean {
  const [pid, boot, start] = owner.split(':')
  if (pid === undefined || boot === undefined || start === undefined || !/^\d+$/.test(pid)) return true
  if (boot !== bootId()) return false
  if (start === '0') return isPidAlive(Number(pid))
  return startTime(Number(pid)) === start
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return hostname()
  }
}

function startTime(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null)
  } catch {
    return null
  }
}

function isPidAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
