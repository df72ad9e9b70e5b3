import { gui, PaddockError } from '../../../../kits/environment.ts'
import type { MachineAddress } from './data.ts'

const resetMs = 600_000
const taken = new Map<string, Promise<void>>()

/** A machine while nobody else of this process works on it. */
export interface LeasedMachine {
  readonly machine: gui.Machine & gui.MachineBrowser
  /** Idempotent. */
  release(): void
}

/**
 * Waits until a machine is free, has it reset and connects. Throws `ENVIRONMENT_TOOL_FAILED` when it is not reset or does not
 * answer; nothing is known of other processes that use it.
 */
export async function leaseMachine({ url, reset }: MachineAddress, signal: AbortSignal): Promise<LeasedMachine> {
  const before = taken.get(url) ?? Promise.resolve()
  const mine = Promise.withResolvers<void>()
  taken.set(
    url,
    before.then(() => mine.promise),
  )
  await before
  try {
    signal.throwIfAborted()
    const response = await fetch(reset, {
      method: 'POST',
      signal: AbortSignal.any([signal, AbortSignal.timeout(resetMs)]),
    })
    if (!response.ok) throw new PaddockError('ENVIRONMENT_TOOL_FAILED', `${reset} answered ${response.status}`)
    return { machine: { ...(await gui.osworldMachine(url)), ...noBrowser }, release: () => mine.resolve() }
  } catch (cause) {
    mine.resolve()
    if (signal.aborted || cause instanceof PaddockError) throw cause
    throw new PaddockError('ENVIRONMENT_TOOL_FAILED', `The machine ${url} could not be reset: ${String(cause)}`, {
      cause,
    })
  }
}

const refuse = async () => {
  throw new PaddockError('TASK_UNSUPPORTED', 'The browser of a machine cannot be asked')
}
const noBrowser: gui.MachineBrowser = { tabs: refuse, front: refuse, openTabs: refuse, closeTabs: refuse }
