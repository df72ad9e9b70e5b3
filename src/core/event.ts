import type { Id } from './ids.ts'
import type { RolloutEnd, Stage } from './task.ts'

/**
 * What happened, in order, beside the calls. Stored in the same log. `at` is milliseconds since the epoch.
 * A plugin may add kinds under `custom`.
 */
export type Event = {
  readonly id: Id
  readonly at: number
  readonly rolloutId: Id | null
  readonly sessionId: Id | null
} & EventBody

export type EventBody =
  | {
      readonly kind: 'stage'
      readonly stage: Stage
      readonly phase: 'start' | 'end'
      readonly durationMs: number | null
    }
  | { readonly kind: 'rollout_end'; readonly end: RolloutEnd; readonly detail: string }
  | {
      /** A command that Paddock itself ran in a box. */
      readonly kind: 'exec'
      readonly role: 'setup' | 'agent' | 'tool' | 'harness' | 'verifier' | 'probe'
      readonly command: string
      readonly outcome: 'exited' | 'signaled' | 'timed_out' | 'oom' | 'box_dead'
      readonly exitCode: number | null
      readonly signal: string | null
      readonly durationMs: number
      /** Tail of the output, bounded by the writer. */
      readonly stdout: string
      readonly stderr: string
      readonly truncatedBytes: number
      readonly callId: Id | null
    }
  | {
      readonly kind: 'tool_result'
      readonly callId: Id | null
      readonly toolCallId: string
      readonly tool: string
      readonly status: 'ok' | 'error' | 'timeout' | 'infra'
      readonly durationMs: number
      readonly result: string
    }
  | {
      readonly kind: 'egress'
      readonly host: string
      readonly port: number
      readonly allowed: boolean
      readonly rule: string
    }
  | { readonly kind: 'snapshot'; readonly image: string; readonly parent: string | null; readonly callId: Id | null }
  | {
      readonly kind: 'box'
      readonly boxId: string
      readonly phase: 'created' | 'died' | 'destroyed'
      readonly detail: string
    }
  | { readonly kind: 'taint'; readonly cause: string; readonly callId: Id | null }
  | { readonly kind: 'label'; readonly name: string; readonly value: string }
  | { readonly kind: 'custom'; readonly name: string; readonly data: unknown }
