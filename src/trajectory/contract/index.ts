/**
 * The store's contracts: what is remembered, and by whom. All async, all append-only: nothing here updates or deletes
 * a recorded fact; a correction is a new fact that `supersedes` an older one.
 *
 * - `Recorder`: the log of sessions, calls, segments, events. SQLite only, one writer thread.
 * - `Catalogue`: tasks, runs, groups, rollouts, verdicts, fingerprints, token texts, verifications.
 * - `Queue`: jobs, and the node sessions that hold them.
 * - `TrainerBook`: what a trainer was handed, and what it said of it.
 * - `Blobs`: content by SHA-256.
 *
 * Conformance suites for each live in `src/testing/store/`.
 */
export type * from './archive.ts'
export type * from './blobs.ts'
export type * from './call.ts'
export * from './group.ts'
export type * from './queue.ts'
export type * from './recorder.ts'
export type * from './session.ts'
export type * from './store.ts'
export * from './call-faults.ts'
export * from './catalogue.ts'
export * from './finding.ts'
export * from './memory.ts'
export * from './null-share.ts'
export * from './segment.ts'
export * from './trainer.ts'
export * from './verdict-in-force.ts'
