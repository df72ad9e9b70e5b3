/** CPU time from /proc: what a process used in all its threads, and what the whole machine did. */
import { readdirSync, readFileSync } from 'node:fs'

/** Microseconds on a CPU so far, all live threads (first field of schedstat, nanoseconds; kernel Documentation/scheduler). */
export function cpuUsOf(pid: number): number {
  let sum = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1000
  }
  return sum
}

/** Microseconds that the machine's cores were busy (proc_stat(5): all fields but idle and iowait, ticks of 10 ms). */
export function machineBusyUs(): number {
  const fields = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').trim().split(/\s+/).slice(1, 9).map(Number)
  return fields.reduce((sum, ticks, place) => (place === 3 || place === 4 ? sum : sum + ticks * 10_000), 0)
}
