/** Which rows of a catalogue in PostgreSQL are of one data directory: those of its runs, and what all runs share. */

const run = 'run IN (SELECT run FROM run_homes WHERE home = $1)'
const group = `"group" IN (SELECT id FROM groups WHERE ${run})`
const rollout = `rollout IN (SELECT id FROM rollouts WHERE ${run})`

/** A table that both catalogues have, with the same columns. */
export interface SharedTable {
  readonly name: string
  /** Which of its rows are of the data directory `$1`; null: all of them. */
  readonly of: string | null
  /** Columns that hold numbers of rows of a table, their own `n` among them. */
  readonly numbered?: Readonly<Record<string, string>>
}

/** In an order in which each refers only to what stands before it. */
export const sharedTables: readonly SharedTable[] = [
  { name: 'tasks', of: null, numbered: { n: 'tasks' } },
  { name: 'fingerprints', of: null },
  { name: 'token_texts', of: null },
  { name: 'verifications', of: null },
  { name: 'runs', of: 'id IN (SELECT run FROM run_homes WHERE home = $1)', numbered: { n: 'runs' } },
  { name: 'groups', of: run, numbered: { n: 'groups' } },
  { name: 'rollouts', of: run, numbered: { n: 'rollouts' } },
  { name: 'rollout_starts', of: rollout },
  { name: 'rollout_works', of: rollout },
  { name: 'rollout_ends', of: rollout },
  { name: 'taints', of: rollout, numbered: { n: 'taints' } },
  { name: 'labels', of: rollout, numbered: { n: 'labels' } },
  { name: 'verdicts', of: rollout, numbered: { n: 'verdicts' } },
  { name: 'group_rounds', of: group },
  { name: 'group_slots', of: group },
  // A trigger makes rows of `handouts` of these, which the true ones take the place of.
  { name: 'settled_rounds', of: group },
  { name: 'run_events', of: run },
  { name: 'trainer_incarnations', of: run },
  { name: 'trainer_checkpoints', of: run },
  { name: 'round_claims', of: run, numbered: { n: 'round_claims' } },
  { name: 'claim_policies', of: `claim IN (SELECT id FROM round_claims WHERE ${run})` },
  { name: 'handed_rows', of: `claim IN (SELECT id FROM round_claims WHERE ${run})` },
  { name: 'dispositions', of: run, numbered: { n: 'dispositions' } },
  { name: 'trainer_metrics', of: run, numbered: { n: 'trainer_metrics' } },
  { name: 'trainer_versions', of: run, numbered: { n: 'trainer_versions' } },
  { name: 'closed_runs', of: run },
  { name: 'handouts', of: run, numbered: { n: 'handouts' } },
  { name: 'owned_segments', of: run },
  { name: 'memory_lines', of: run, numbered: { n: 'memory_lines' } },
  { name: 'remembered', of: rollout, numbered: { line: 'memory_lines' } },
  { name: 'archived_sessions', of: 'home = $1', numbered: { n: 'archived_sessions' } },
  { name: 'node_sessions', of: `id IN (SELECT session FROM jobs WHERE ${run})` },
  { name: 'jobs', of: run, numbered: { n: 'jobs' } },
  { name: 'hand_ins', of: `job IN (SELECT n FROM jobs WHERE ${run})`, numbered: { job: 'jobs' } },
]

/** Tables that only PostgreSQL has: which database and which directories, and its schema's version. */
export const ownTables: readonly string[] = ['identity', 'data_directories', 'run_homes', 'schema_version']
