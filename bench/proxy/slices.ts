/** Cores that are parts of a core: each process gets one, by a CPU control group (v1 or v2), so that few cores show what many would do. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'

const v1 = '/sys/fs/cgroup/cpu'
const v2 = '/sys/fs/cgroup'
const periodUs = 10_000

/** Groups that were made. */
export class Slices implements Disposable {
  readonly #made: string[] = []

  /** Bounds a process with all its threads, and keeps that part for it. False: this machine does not let us. */
  give(pid: number, part: number): boolean {
    const isV1 = existsSync(`${v1}/cpu.cfs_quota_us`)
    const group = `${isV1 ? v1 : v2}/paddock-bench-${pid}`
    const quota = Math.round(periodUs * part)
    try {
      mkdirSync(group)
      this.#made.push(group)
      if (isV1) {
        writeFileSync(`${group}/cpu.cfs_period_us`, String(periodUs))
        writeFileSync(`${group}/cpu.cfs_quota_us`, String(quota))
        writeFileSync(`${group}/cpu.shares`, '100000')
      } else {
        writeFileSync(`${group}/cpu.max`, `${quota} ${periodUs}`)
        writeFileSync(`${group}/cpu.weight`, '10000')
      }
      writeFileSync(`${group}/cgroup.procs`, String(pid))
      return true
    } catch {
      return false
    }
  }

  /** When their processes are gone. */
  [Symbol.dispose](): void {
    for (const group of this.#made.splice(0)) rmdirSync(group)
  }
}
