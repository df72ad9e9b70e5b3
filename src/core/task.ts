import { sha256 } from './digest.ts'
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

/**
 * A task with its digest: SHA-256 over the canonical JSON (keys sorted) of environment, instruction, split and data.
 * The name and the place it was loaded from are not part of it.
 */
export function makeTask(parts: Omit<Task, 'digest'>): Task {
  const { environment, instruction, split, data } = parts
  return { ...parts, digest: sha256(canonical({ environment, instruction, split, data })) }
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
    const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `{${sorted.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
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
