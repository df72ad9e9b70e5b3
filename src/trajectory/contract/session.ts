/** Sessions: a conversation under one credential, and the policy under which it runs. */
import type { Digest, Id } from '../../core/index.ts'

/** How token ids are captured; see DESIGN §4. */
export type TokenStrategy = 'record' | 'splice'

/**
 * Where a text goes: behind the system's words (a system message is made where there is none), behind the task (the first
 * words of the user), or behind whatever the agent was told after so many answers of its own.
 */
export type InjectionPlace = 'system' | 'task' | { readonly turn: number }

/** A text that the policy sees and the harness does not. */
export interface Injection {
  readonly at: InjectionPlace
  /** Stands a blank line behind what is there. */
  readonly text: string
  /** What it is called in records and rows. */
  readonly label: string
  /** `always`: in every later prompt too, at the same place; `once`: in the one prompt that ends there, so that the next is a fork. */
  readonly keep: 'always' | 'once'
}

/** The policy under which a session runs. Stored whole, exported in manifests. */
export interface SessionPolicy {
  readonly strategy: TokenStrategy | 'auto'
  /** Keep the thinking that was sampled, or let the template strip it and fork. */
  readonly history: 'sampled' | 'template'
  /** Sampling fields forced to a value whatever the harness asks, by name of {@link SamplingParams}. */
  readonly pin: Readonly<
    Partial<
      Record<
        | 'temperature'
        | 'topP'
        | 'topK'
        | 'minP'
        | 'presencePenalty'
        | 'frequencyPenalty'
        | 'repetitionPenalty'
        | 'maxTokens'
        | 'seed',
        number
      >
    >
  >
  /** Upper bounds. */
  readonly clamp: Readonly<{ maxTokens?: number; temperature?: number; n?: number }>
  /** Values used where the harness sets none. */
  readonly defaults: Readonly<{ temperature?: number; topP?: number; maxTokens?: number }>
  /** The model name sent to the engine; null: as the harness asks. */
  readonly model: string | null
  readonly budget: Readonly<{ maxCalls: number | null; maxSampledTokens: number | null; maxWallMs: number | null }>
  /** What becomes of a bound on thinking that another API than chat asks for: told to the engine, or recorded only (default). */
  readonly thinkingBudget?: 'pass' | 'record'
  /** Alternatives per sampled token that the engine is asked for where the harness asks for no logprobs; absent: none. */
  readonly topLogprobs?: number
  /** What is put into the prompts of its main conversation; absent: nothing. */
  readonly inject?: readonly Injection[]
  /** Which of several policies the session belongs to; absent: there is one. */
  readonly name?: string
  /** That one is not trained: what it samples is recorded, and context of nothing. Absent: it is. */
  readonly trained?: false
  /** What becomes of an engine call whose client went away: let it finish, or abort it upstream. */
  readonly onDisconnect: 'finish' | 'abort'
}

/** A conversation under one credential. 0..n per rollout. */
export interface SessionRecord {
  readonly id: Id
  readonly rolloutId: Id | null
  /** `agent` is the policy being trained; the others are recorded and never trained. */
  readonly role: 'agent' | 'judge' | 'user_simulator' | 'teacher' | 'probe'
  readonly policy: SessionPolicy
  /** SHA-256 of the session key; the key itself is never stored. */
  readonly keyDigest: Digest
  /** Where it goes on from another session's past: behind the request of that call. */
  readonly forkedFrom: { readonly sessionId: Id; readonly callId: Id } | null
  readonly createdAt: number
  readonly labels: Readonly<Record<string, string>>
}
