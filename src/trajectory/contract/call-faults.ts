import type { Id } from '../../core/index.ts'
import type { CallRecord } from './call.ts'
import { unsoundnessOf } from './finding.ts'
import type { SessionLog } from './recorder.ts'

/** The cause of a call that the end of its process cut off. */
const interrupted = 'interrupted'

/**
 * Calls that ended without an answer and through no fault of the agent (invariant I7). A fault stands until the same request
 * is answered: the answer of a retry lifts the faults of all calls that it repeats. It also knows whether any answer is sound.
 */
export class CallFaults {
  #hasSound = false
  #unsound: string | null = null
  readonly #causes = new Map<Id, string>()
  readonly #retryOf = new Map<Id, Id>()

  /** A call begins; `retryOf`: the call whose request it repeats. */
  began(callId: Id, retryOf: Id | null): void {
    if (retryOf !== null) this.#retryOf.set(callId, retryOf)
  }

  met(callId: Id, cause: string): void {
    this.#causes.set(callId, cause)
  }

  /** The harness has the answer of this call. */
  answered(callId: Id): void {
    if (this.#causes.size === 0) return
    for (let id: Id | undefined = callId; id !== undefined; id = this.#retryOf.get(id)) this.#causes.delete(id)
  }

  /** The model sampled an answer; `unsoundness`: why none of its tokens may be trained. */
  sampled(unsoundness: string | null): void {
    if (unsoundness === null) this.#hasSound = true
    else this.#unsound ??= unsoundness
  }

  /** Why the engine's faults leave nothing of all that was sampled to train; null: something is left, or nothing was sampled. */
  get unsound(): string | null {
    return this.#hasSound ? null : this.#unsound
  }

  /** Some answer may be trained, as far as its engine goes. */
  get hasSound(): boolean {
    return this.#hasSound
  }

  /** The fault of this call; null: it has none, or it was made good. */
  of(callId: Id): string | null {
    return this.#causes.get(callId) ?? null
  }

  /** Causes of the faults that stand, in order. */
  get causes(): readonly string[] {
    return [...this.#causes.values()]
  }
}

/** The faults of a session as its log shows them: the same after a kill as in the process that met them. */
export function callFaultsOf({ calls, events }: Pick<SessionLog, 'calls' | 'events'>): CallFaults {
  const faults = new CallFaults()
  for (const { intent, commit } of calls) {
    faults.began(intent.id, intent.retryOf)
    if (commit?.outcome.kind === 'interrupted') faults.met(intent.id, interrupted)
    if (commit?.choices.some(({ segmentId }) => segmentId !== null)) faults.sampled(unsoundnessOf(commit.findings))
  }
  for (const event of events) if (event.kind === 'taint') faults.met(event.callId ?? event.id, event.cause)
  for (const call of calls) if (isDelivered(call)) faults.answered(call.intent.id)
  return faults
}

/** The harness has the whole answer, also where it came back for it. */
function isDelivered({ commit, delivery }: CallRecord): boolean {
  const outcome = commit?.outcome
  if (outcome?.kind === 'client_gone') return outcome.upstream === 'finished' && delivery !== 'unknown'
  return outcome?.kind === 'complete'
}
