/** The process of {@link startReaper}: waits for the end of its input, which is the end of its owner, and sweeps. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { DaemonOptions } from './place.ts'

/** A container whose creation was under way when the owner died appears a little later. */
const sweepAfterMs = [0, 2000, 10_000]

const [, , daemon = '{}', owner = ''] = process.argv
// Any word means that nothing is left.
process.stdin.once('data', () => process.exit(0)).once('close', () => void sweepAll())

async function sweepAll(): Promise<void> {
  // Only now, so that it is small while it waits.
  const { connectDaemon } = await import('./daemon.ts')
  const { sweepOwner } = await import('./sweep.ts')
  // What `startReaper` of the same version wrote.
  const docker = connectDaemon(JSON.parse(daemon) as DaemonOptions)
  for (const ms of sweepAfterMs) {
    await sleep(ms)
    // Whatever fails here is for the next command's sweep, which can tell somebody.
    await sweepOwner(docker, owner).catch(() => undefined)
  }
  process.exit(0)
}
