import { type ChildProcess, spawn } from 'node:child_process'
import { thisOwner } from '../../core/index.ts'
import { fileURLToPath } from 'node:url'
import type { DaemonOptions } from './place.ts'

interface Reaper {
  readonly child: ChildProcess
  users: number
}

const reapers = new Map<string, Reaper>()

/**
 * Starts, once per daemon, a small process that sees this one end, in whatever way, and sweeps then. Boxes end by
 * themselves with their owner; it is for what cannot: frozen and half-made containers, snapshots, directories of sockets.
 * Call the answer when nothing is left to sweep; the last call ends it.
 */
export function startReaper(at: DaemonOptions): () => void {
  const daemon = JSON.stringify(at)
  const reaper = reapers.get(daemon) ?? { child: spawnReaper(daemon), users: 0 }
  reapers.set(daemon, reaper)
  reaper.users += 1
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    reaper.users -= 1
    if (reaper.users > 0) return
    reapers.delete(daemon)
    reaper.child.stdin?.end('nothing is left\n')
  }
}

function spawnReaper(daemon: string): ChildProcess {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const program = fileURLToPath(new URL(`./reaper-worker.${extension}`, import.meta.url))
  // A session of its own: a Ctrl-C at the terminal is for us alone. Our end closes its input.
  const child = spawn(process.execPath, ['--max-old-space-size=64', program, daemon, thisOwner()], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  })
  // Without it everything works, and the next command sweeps.
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.unref()
  if ('unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref()
  return child
}
