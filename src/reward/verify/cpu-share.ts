import type { Box } from '../../sandbox/index.ts'

/** Half a second of counting: hundredths of seconds of the machine's clock, then of the shell's own processor time. */
const script = `now() { read -r up _ < /proc/uptime; up=\${up%.*}\${up#*.}; }
used() { read -r line < /proc/$$/stat; set -- \${line##*)}; ticks=$((\${12} + \${13})); }
now; used; from=$up; had=$ticks
while now; [ $((up - from)) -lt 50 ]; do i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; done
used; echo $((up - from)) $((ticks - had))`

/** Below this share of a processor a limit by the clock says nothing of what it limits. */
const fairShare = 0.7

/**
 * Whether a process in this box gets clearly less of a processor than the box is meant to have, because others use the
 * machine. Ask it in a box in which nothing else runs and whose shell is the image's own. An image whose shell cannot
 * tell is not called starved.
 */
export async function isStarved(
  box: Box,
  o: { readonly cpus: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const result = await box.exec(
    {
      command: ['/bin/sh', '-c', script],
      cwd: '/',
      timeoutMs: 30_000,
      eventRole: 'verifier',
      eventCommand: 'cpu share',
    },
    { signal: o.signal },
  )
  if (result.kind === 'timed_out') return true
  const [wall, used] = new TextDecoder().decode(result.stdout).trim().split(' ').map(Number)
  if (result.kind !== 'exited' || result.code !== 0 || wall === undefined || used === undefined) return false
  return used / wall < fairShare * Math.min(1, o.cpus)
}
