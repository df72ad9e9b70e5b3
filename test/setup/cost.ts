/** Notes what a test file costs in CPU seconds, its own and those of the children that it waited for: what cost-table.ts prints. */
import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    cpuS?: number
  }
}

/** Fields 14 to 17 of /proc/self/stat, in hundredths of a second, see proc_pid_stat(5); null where there is no such file. */
function cpuSoFar(): number | null {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    // The command name stands in parentheses and may hold spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / 100, 0)
  } catch {
    return null
  }
}

const before = cpuSoFar()
// oxlint-disable-next-line no-empty-pattern -- vitest reads the pattern
afterAll(({}, file) => {
  const now = cpuSoFar()
  if (before !== null && now !== null) file.meta.cpuS = now - before
})
