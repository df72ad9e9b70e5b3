import type { SandboxProvider } from '../sandbox/index.ts'
import type { AgentClock } from './agent-clock.ts'

/**
 * Holds agents while the policy updates: whoever pauses the engine calls {@link PolicyPause.begin} after it and disposes
 * the answer before it lets the engine go on. Boxes of agents stand still, and no agent's clock runs. Pauses nest.
 */
export interface PolicyPause {
  begin(): Promise<AsyncDisposable>
  /** Has a clock stand still in pauses, one that is under way included. Dispose when its agent is over. */
  watch(clock: AgentClock): Disposable
}

/**
 * Holds agents from each `paused` of the engine to its `resumed`, as the proxy's events tell. In order, so that a resume
 * that follows at once finds what it has to end.
 */
export function followEngine(pause: PolicyPause): (what: string) => void {
  let held: AsyncDisposable | null = null
  let turn: Promise<void> = Promise.resolve()
  return (what) => {
    const act = async (): Promise<void> => {
      if (what === 'paused') held ??= await pause.begin()
      if (what !== 'resumed' || held === null) return
      const over = held
      held = null
      await over[Symbol.asyncDispose]()
    }
    // A box that cannot be held or let go has died, which its rollout learns by itself.
    turn = turn.then(act).catch(() => undefined)
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
        [Symbol.asyncDispose]: async () => {
          if (over) return
          over = true
          await boxes?.[Symbol.asyncDispose]()
          depth -= 1
          if (depth === 0) for (const clock of clocks) release(clock)
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
