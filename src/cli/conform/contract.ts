import type { CallClass, RolloutEnd } from '../../core/index.ts'
import type { DriftCause } from '../../trajectory/index.ts'

/** What a harness was seen to do, by reading the store and the scripted engine's journal. */
export interface Conformance {
  readonly harness: string
  readonly version: string
  readonly place: 'box' | 'host'
  /** Dialects of its recorded calls, not what its preset says. */
  readonly dialects: readonly string[]
  /** How each probe ended, in order of the probes. */
  readonly ends: readonly ProbeEnd[]
  readonly streams: 'always' | 'sometimes' | 'never'
  /** Tools that its main calls offer. */
  readonly tools: number
  /** Whether both results of two calls in one answer came back in one request. */
  readonly parallel: boolean | null
  readonly echo: EchoFacts
  readonly appendOnly: AppendFacts
  /** Calls by class, over all probes; `main` too. */
  readonly classes: Readonly<Partial<Record<CallClass, number>>>
  readonly retries: Readonly<Record<FaultProbe, RetryFacts | null>>
  /** Null where it made no call that could be gone on from. */
  readonly replay: ReplayFacts | null
  /** In a copy of its box; null where its preset offers no such way. */
  readonly copied: CopiedFacts | null
  /** Null where it offers no tool that starts another agent. */
  readonly subagents: SubagentFacts | null
  /** Part of the sampled tokens whose answer was sent whole, or came back in a later prompt. Clean probes. */
  readonly delivered: number | null
  /**
   * Part of the trainable tokens whose row, up to them, is what the engine's journal says that it conditioned on; with
   * `record` and with `splice`. Null where nothing was trainable.
   */
  readonly exact: { readonly record: number | null; readonly splice: number | null }
}

export interface ProbeEnd {
  readonly probe: string
  readonly end: RolloutEnd
  readonly detail: string
  readonly calls: number
}

/** How earlier answers stand in later requests. Counts of answers, each counted at its first echo. */
export interface EchoFacts {
  readonly text: { readonly same: number; readonly trimmed: number; readonly edited: number; readonly lost: number }
  /** `same`: byte for byte; `reserialised`: other bytes for the same JSON; `edited`: another value. */
  readonly arguments: {
    readonly same: number
    readonly reserialised: number
    readonly edited: number
    readonly lost: number
  }
}

/**
 * Of the answered calls of class `main` behind the first: how many extended what was sampled, and why the others did not
 * (`untold`: the drift report has no entry).
 */
export interface AppendFacts {
  readonly turns: number
  readonly extended: number
  readonly causes: Readonly<Partial<Record<DriftCause | 'untold', number>>>
}

export type FaultProbe = 'limited' | 'failed' | 'cut'

/** What it does after one call that the engine failed. */
export interface RetryFacts {
  /** Class of the call that was failed; null when no call was. */
  readonly struck: CallClass | null
  /** Further requests with the same digest. */
  readonly repeats: number
  /** Of them, those that say that they are a retry (SDK header or idempotency key). */
  readonly marked: number
  /** From the end of the failed call to the next request, in milliseconds; null without one. */
  readonly afterMs: number | null
  /** Whether the attempt still came to its end as planned. */
  readonly recovered: boolean
}

export interface SubagentFacts {
  readonly tool: string
  /** Calls that were given the class `subagent`. */
  readonly calls: number
}

/** What it asks when it goes on in a copy of its box. */
export interface CopiedFacts {
  readonly way: 'state' | 'graft'
  /** What its first request, or the ids that the engine read of it, has other than then; null: nothing. */
  readonly differs: string | null
}

/** What it asks when it is started anew, and told what it was told before. */
export interface ReplayFacts {
  /** Calls that were the same, of those of the conversation. */
  readonly same: number
  readonly calls: number
  /** The first difference; null where there is none. */
  readonly differs: string | null
}
