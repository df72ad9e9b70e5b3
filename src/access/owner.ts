import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { PaddockError } from '../core/index.ts'
import { liveOwner, ownerBusy } from '../trajectory/index.ts'
import { tokenFileName } from './control-token.ts'

/** A live owner that is busy answers late. */
const answerMs = 15_000
/** An owner that does not offer its control API after this long (it starts an engine before) never will. */
const startMs = 120_000
const lookMs = 100

/** The control API of the process that owns a data directory. */
export interface OwnerAddress {
  readonly pid: number
  readonly origin: string
  readonly token: string
}

export interface FindOwnerOptions {
  /** The configured control token; null: the one that the owner keeps in the directory. */
  readonly token: string | null
  readonly signal: AbortSignal
  /** Told once where the owner has to be waited for. */
  readonly onWait: (pid: number) => void
}

/**
 * The control API of the live owner of a data directory; null where nobody owns it. One that is starting, or stopping, is
 * waited for. Throws `STORE_LOCKED` at once for one that never offers an API, such as the viewer, and for one that keeps it from us, and the signal's reason.
 */
export async function findOwner(directory: string, o: FindOwnerOptions): Promise<OwnerAddress | null> {
  let waitingFor: number | null = null
  const beganAt = performance.now()
  for (;;) {
    const owner = liveOwner(directory)
    if (owner === null) return null
    const { pid, controlUrl, work } = owner
    if (work !== null) throw ownerBusy(directory, { pid, work })
    if (controlUrl !== null && (await answers(controlUrl, o.signal))) {
      return { pid, origin: controlUrl, token: o.token ?? (await tokenOf(directory, pid)) }
    }
    if (performance.now() - beganAt >= startMs) {
      throw locked(directory, pid, 'takes no runs', `Stop process ${pid}, or choose another --data directory.`)
    }
    if (waitingFor !== pid) o.onWait(pid)
    waitingFor = pid
    await setTimeout(lookMs, undefined, { signal: o.signal })
  }
}

/** Resolves when the process no longer owns the data directory. Throws the signal's reason. */
export async function ownerGone(directory: string, pid: number, signal: AbortSignal): Promise<void> {
  while (liveOwner(directory)?.pid === pid) await setTimeout(lookMs, undefined, { signal })
}

async function answers(origin: string, signal: AbortSignal): Promise<boolean> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(answerMs)])
    // Closed behind it: what is asked next is no request that may be sent twice, and must not meet an idle connection's end.
    const answer = await fetch(`${origin}/healthz`, { signal: limit, headers: { connection: 'close' } })
    await answer.text()
    return answer.ok
  } catch {
    signal.throwIfAborted()
    return false
  }
}

async function tokenOf(directory: string, pid: number): Promise<string> {
  const path = join(directory, tokenFileName)
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch {
    throw locked(directory, pid, `keeps its control token from us`, `Run as its user, or configure control.token.`)
  }
}

function locked(directory: string, pid: number, why: string, fix: string): PaddockError {
  return new PaddockError('STORE_LOCKED', `${directory} is owned by process ${pid}, which ${why}`, { fix })
}
