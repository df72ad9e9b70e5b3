import type { Digest, Id } from './ids.ts'
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
  | {
      readonly kind: 'rollout_end'
      readonly end: RolloutEnd
      readonly detail: string
      /** What the harness says that it failed of (`HarnessReport.fault`); absent where it says nothing. */
      readonly fault?: string
    }
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
      /** Pictures that the model was given with it: stored as blobs. Width and height in pixels. */
      readonly images?: readonly {
        readonly sha256: Digest
        readonly mediaType: string
        readonly width: number
        readonly height: number
      }[]
      /** How the tool's work went, by the tool's own names: what the model was not told. */
      readonly facts?: Readonly<Record<string, number | string>>
    }
  | {
      /** Parts of the reward that are known while the rollout goes on, by name; of a name the last one stands. No verdict. */
      readonly kind: 'reward'
      /** The call whose tool brought them; null: no tool did. */
      readonly callId: Id | null
      readonly parts: Readonly<Record<string, number>>
    }
  | {
      /** What the agent said to the user of its task, and what the user said to that. */
      readonly kind: 'user_turn'
      /** Counts from 1. */
      readonly turn: number
      readonly said: string
      /** Null: the user has left. */
      readonly reply: string | null
      /**
       * Why the conversation is over with this. `left`: the user went by itself; `record`: its recorded replies are used up; `max_turns`:
       * it says no more; `silent`: the agent said nothing. Null: it goes on.
       */
      readonly over: 'left' | 'record' | 'max_turns' | 'silent' | null
      readonly by: 'record' | 'model'
      /** The user's own call, in its own session; null where no model was asked. */
      readonly callId: Id | null
      /** The reply reached its token limit. */
      readonly cut?: true
    }
  | {
      /** What one of several agents said at the end of its turn: the others are told. */
      readonly kind: 'agent_turn'
      /** Counts from 1, over all agents. */
      readonly turn: number
      readonly agent: string
      readonly said: string
      /** Why the work is over with this. `done`: the word for it was said; `max_turns`; `silent`: it said nothing. Null: it goes on. */
      readonly over: 'done' | 'max_turns' | 'silent' | null
    }
  | {
      /** What became of a call that was answered with a handle. */
      readonly kind: 'deferred_result'
      readonly handle: string
      readonly tool: string
      /**
       * `asked`, `told`: how the agent got it; `lost`: it never came, as the task has it; `expired`: its work was given up; `unread`: the
       * agent ended without it.
       */
      readonly came: 'asked' | 'told' | 'lost' | 'expired' | 'unread'
      /** Null: its work was not done. */
      readonly status: 'ok' | 'error' | 'timeout' | 'infra' | null
      /** Calls of tools since it was asked for, and milliseconds. */
      readonly lateCalls: number
      readonly lateMs: number
    }
  | {
      /** The library of a chain at the end of one of its rollouts: files that go from box to box. Paths are below it. */
      readonly kind: 'library'
      /** Digests of the artifacts that stood in the box at first and that were kept in the end; null: none. Equal: nothing else was kept. */
      readonly given: Digest | null
      readonly left: Digest | null
      /** The rollout that `given` is of; null: none. */
      readonly from: Id | null
      /** How many files `left` has. */
      readonly files: number
      /** Files that were given and were read or copied in the box, by its file system; null: it does not tell, or one was removed or replaced. */
      readonly used: readonly string[] | null
      /** Files that are new or changed. */
      readonly wrote: readonly string[]
      /** What was not kept, the first 50. */
      readonly refused: readonly { readonly path: string; readonly reason: string }[]
    }
  | {
      readonly kind: 'egress'
      readonly host: string
      readonly port: number
      readonly allowed: boolean
      readonly rule: string
    }
  | {
      readonly kind: 'snapshot'
      readonly image: string
      readonly parent: string | null
      /** The call of the conversation after which it was taken. */
      readonly callId: Id | null
      /** Digest of the request that waited meanwhile: the call that it can be forked at. Absent: none did. */
      readonly request?: Digest
      /** It outlives its run. */
      readonly kept?: true
      /** Processes and files in memory that stood in the box and are in no copy of it, a line for each. Absent: none was seen. */
      readonly without?: readonly string[]
    }
  | {
      readonly kind: 'box'
      readonly boxId: string
      readonly phase: 'created' | 'died' | 'destroyed'
      readonly detail: string
    }
  | {
      /** A call ended without an answer, and not through the agent. The answer of a retry of that call makes it good. */
      readonly kind: 'taint'
      readonly cause: string
      readonly callId: Id | null
      /** Digest of the request, which a retry repeats. Absent: not known. */
      readonly request?: Digest
    }
  /** A call was held up by a pause of generation; no time of the agent. */
  | { readonly kind: 'engine_wait'; readonly callId: Id; readonly waitedMs: number }
  | {
      /** What an engine gave beside ids and logprobs, kept as a blob. */
      readonly kind: 'side_channel'
      readonly callId: Id
      readonly choice: number
      readonly what: 'top_logprobs' | 'entropies' | 'routed_experts'
      /** `json+zstd`: per token a list of `{token, logprob}`; `float32le`: a number per token; `npy`, `int32le`: the engine's own array. */
      readonly encoding: 'json+zstd' | 'float32le' | 'npy' | 'int32le'
      readonly sha256: Digest
      readonly sizeBytes: number
    }
  | {
      /**
       * Of a session that goes on from another one's past. `answered`: a call got the answer that was given then; `arrived`: it is the
       * one to fork at; `diverged`: it is not what was asked then; `graft_lost`: a resumed harness's request does not say where its past
       * ends, or what its tools had said last; `prompt_differs`: the engine read the request at the fork as other tokens than its parent's; `box_diverged`: the files that
       * the replayed tools made are not those of the parent's box.
       */
      readonly kind: 'replay'
      readonly phase: 'answered' | 'arrived' | 'diverged' | 'graft_lost' | 'prompt_differs' | 'box_diverged'
      readonly callId: Id | null
      /** `answered`: the call whose answer was sampled; else the one of the past that was to come. */
      readonly of: Id | null
      readonly detail: string
    }
  | {
      /** What the policy saw in a prompt beyond what its harness wrote: see `SessionPolicy.inject`. */
      readonly kind: 'injected'
      readonly callId: Id
      readonly labels: readonly string[]
      /**
       * What makes the prompt that it would have been without: tokens `[start, end)` of the prompt, counted from its first, give way
       * to `ids`. Ascending. Of what was injected into earlier prompts only some may be told. Null: nobody knows, as `detail` says.
       */
      readonly edits:
        | readonly { readonly start: number; readonly end: number; readonly ids: readonly number[] }[]
        | null
      readonly detail: string
    }
  /** A resumed harness's request was read with the recorded past in it: what it sent, as a blob. */
  | { readonly kind: 'grafted'; readonly callId: Id; readonly sha256: Digest }
  | {
      /** An agent was put aside, or went on. No time between the two is its own. */
      readonly kind: 'shelve'
      readonly phase: 'shelved' | 'resumed'
      /** Generations that were ended to be gone on with. */
      readonly interrupted: number
      /** Why. */
      readonly detail: string
    }
  /** A client deleted a response that it had asked to store: it is not given out or continued any more. */
  | { readonly kind: 'response_deleted'; readonly responseId: string; readonly callId: Id }
  | {
      readonly kind: 'label'
      readonly name: string
      /** The last one of a name stands. */
      readonly value: string
      /** Name of the token of the person who gave it; absent: Paddock did. */
      readonly token?: string
    }
  | {
      /** Somebody asked over the control API for what steers others; what came of it is recorded on its own. */
      readonly kind: 'act'
      /** Name of the token, and its role. */
      readonly token: string
      readonly role: string
      /** The route: `DELETE /runs/:id`. */
      readonly action: string
      /** What stood in its path, by name. */
      readonly path: Readonly<Record<string, string>>
      /** What its body said, as far as it is told. */
      readonly said: Readonly<Record<string, string>>
    }
  | {
      /** The rollout ran on another machine and was ingested here. */
      readonly kind: 'handed_in'
      /** SHA-256 of what was handed in. */
      readonly digest: Digest
      readonly sizeBytes: number
      /** Who did: the name of a node or of a token. */
      readonly by: string
    }
  | { readonly kind: 'custom'; readonly name: string; readonly data: unknown }
