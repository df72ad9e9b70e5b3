import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { sha256 } from './digest.ts'

/**
 * Who made an object: `<pid>:<boot id>:<start time>:<pid namespace>:<machine>`. The start time (field 22 of /proc/<pid>/stat, proc(5)) tells a
 * process from a later one with the same number, the boot id tells this uptime from an earlier one, the namespace (the number of
 * /proc/self/ns/pid, pid_namespaces(7)) tells whose numbers they are: a container has its own, and shares the daemon. The machine (a digest of /etc/machine-id, machine-id(5)) tells an earlier uptime of this one from another
 * machine that shares the daemon.
 */
export function thisOwner(): string {
  return `${process.pid}:${bootId()}:${startTime('self') ?? '0'}:${namespaceOf('self') ?? ''}:${machineId()}`
}

/**
 * False only when that process is certainly gone (a zombie counts as gone). What cannot be read is taken as alive, and so is a process
 * of a namespace or a machine that cannot be looked into from here.
 */
export function isOwnerAlive(owner: string): boolean {
  const [pid, boot, start, namespace = '', machine = ''] = owner.split(':')
  if (pid === undefined || boot === undefined || start === undefined || !/^\d+$/.test(pid)) return true
  if (boot !== bootId()) return machine !== '' && machine !== machineId()
  if (namespace !== '' && namespace !== namespaceOf('self')) return isAliveElsewhere(pid, start, namespace)
  if (start === '0') return isPidAlive(Number(pid))
  return startTime(pid) === start
}

/** Of the first namespace of a machine, from which all others are seen (`PROC_PID_INIT_INO`, include/linux/proc_ns.h). */
const firstNamespace = '4026531836'

/** Whether a process of another namespace is alive, by those of its processes that are seen from here. */
function isAliveElsewhere(pid: string, start: string, namespace: string): boolean {
  const seen = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && namespaceOf(name) === namespace)
  if (seen.some((name) => innerPid(name) === pid && (start === '0' || startTime(name) === start))) return true
  const seesAll = process.getuid?.() === 0 && namespaceOf('self') === firstNamespace
  return seen.length === 0 && !seesAll
}

function namespaceOf(process: string): string | null {
  try {
    return /\d+/.exec(readlinkSync(`/proc/${process}/ns/pid`))?.[0] ?? null
  } catch {
    return null
  }
}

/** The number of a process in its own namespace, the last of its numbers. */
function innerPid(process: string): string | null {
  try {
    return /^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${process}/status`, 'utf8'))?.[1] ?? null
  } catch {
    return null
  }
}

/** Empty where there is none, as in most containers. */
function machineId(): string {
  try {
    const id = readFileSync('/etc/machine-id', 'utf8').trim()
    return id === '' ? '' : sha256(`paddock ${id}`).slice(0, 12)
  } catch {
    return ''
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return hostname()
  }
}

function startTime(process: string): string | null {
  try {
    const text = readFileSync(`/proc/${process}/stat`, 'utf8')
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
