import type { BoxPause, SandboxProvider } from '../sandbox/index.ts'
import type { AgentClock } from './agent-clock.ts'

/**
 * Holds agents while the policy updates: whoever pauses the engine calls {@link PolicyPause.begin} after it and disposes
 * the answer before it lets the engine go on. Boxes of agents stand still, and no agent's clock runs. Pauses nest.
 */
export interface PolicyPause {
  begin(): Promise<BoxPause>
  /** Has a clock stand still in pauses, one that is under way included. Dispose when its agent is over. */
  watch(clock: AgentClock): Disposable
}

/**
 * Holds agents from each `paused` of the engine to its `resumed`, as the proxy's events tell. In order, so that a resume
 * that follows at once finds what it has to end. A box that goes on in a pause is told to `onMissed`, and so is a pause
 * that could not be ended, without a box.
 */
export function followEngine(
  pause: PolicyPause,
  onMissed: (missed: { readonly boxId: string | null; readonly why: unknown }) => void,
): (what: string) => void {
  let held: AsyncDisposable | null = null
  let turn: Promise<void> = Promise.resolve()
  return (what) => {
    const act = async (): Promise<void> => {
      if (what === 'paused' && held === null) {
        const begun = await pause.begin()
        held = begun
        begun.missed.forEach(onMissed)
      }
      if (what !== 'resumed' || held === null) return
      const over = held
      held = null
      await over[Symbol.asyncDispose]()
    }
    turn = turn.then(act).catch((why: unknown) => onMissed({ boxId: null, why }))
  }
}

/** One for all runs that share a sandbox; null where there are no boxes to hold. */
export function policyPause(sandbox: Pick<SandboxProvider, 'pauseBoxes'> | null): PolicyPause {
  const held = new Map<AgentClock, Disposable>()
  const clocks = new Set<AgentClock>()
  let depth = 0
  const release = (clock: AgentClock): void => {
    held.get(clock)?.[Symbol.dispose]()
    held.delete(clock)
  }
  return {
    begin: async () => {
      depth += 1
      for (const clock of clocks) if (!held.has(clock)) held.set(clock, clock.hold())
      const boxes = (await sandbox?.pauseBoxes()) ?? null
      let over = false
      return {
        missed: boxes?.missed ?? [],
        [Symbol.asyncDispose]: async () => {
          if (over) return
          over = true
          try {
            await boxes?.[Symbol.asyncDispose]()
          } finally {
            depth -= 1
            if (depth === 0) for (const clock of clocks) release(clock)
          }
        },
      }
    },
    watch: (clock) => {
      clocks.add(clock)
      if (depth > 0) held.set(clock, clock.hold())
      return {
        [Symbol.dispose]: () => {
          release(clock)
          clocks.delete(clock)
        },
      }
    },
  }
}
