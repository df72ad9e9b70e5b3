import type { Digest } from './ids.ts'

/** One problem, identified by the digest of its canonical form. */
export interface Task {
  /** SHA-256 over environment, instruction, data, verifier parameters. */
  readonly digest: Digest
  /** Human name, unique within its source (`log-forensics`). */
  readonly name: string
  readonly environment: string
  readonly instruction: string
  readonly split: string
  /** Parsed by the environment's own zod schema. JSON. */
  readonly data: unknown
  /** Where it was loaded from; not part of the digest. */
  readonly source: string
}

/** How a rollout ended. */
export type RolloutEnd =
  | 'completed'
  | 'agent_timeout'
  | 'budget'
  | 'context_overflow'
  | 'horizon'
  | 'harness_crash'
  | 'cancelled'
  | 'infra'

/** The stages of a rollout, in order. */
export type Stage = 'queue' | 'boot' | 'setup' | 'agent' | 'collect' | 'verify' | 'export'
