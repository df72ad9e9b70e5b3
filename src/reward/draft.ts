import type { Verdict } from '../core/index.ts'

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

/** A verdict before it has a place in the log: what an environment's `verify` gives. */
export type VerdictDraft = DistributiveOmit<Verdict, 'id' | 'rolloutId' | 'at' | 'supersedes'>
