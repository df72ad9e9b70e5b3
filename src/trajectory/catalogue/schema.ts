import { sqliteMemory, sqliteUsedAt } from '../memory/index.ts'
import type { DigestedTable, Migration } from '../sqlite/index.ts'

/** A table of the catalogue whose rows carry digests. */
export interface CoveredTable<Column extends string = string> extends DigestedTable<Column> {
  /** Of whom its rows are counted: of a rollout, or of the table itself. */
  readonly scope: 'rollout' | 'table'
}

/** Every covered table with its columns but `n` and `digest`. */
export const catalogueTables = {
  tasks: table('tasks', ['task', 'record']),
  runs: table('runs', ['id', 'record']),
  groups: table('groups', ['id', 'run', 'task', 'record']),
  rollouts: table('rollouts', ['id', 'run', 'group', 'slot', 'attempt', 'record']),
  starts: ofRollout('rollout_starts', ['rollout', 'at']),
  works: ofRollout('rollout_works', ['rollout', 'record']),
  ends: ofRollout('rollout_ends', ['rollout', 'at', 'end', 'detail']),
  taints: ofRollout('taints', ['rollout', 'cause']),
  labels: ofRollout('labels', ['rollout', 'name', 'value']),
  verdicts: ofRollout('verdicts', ['id', 'rollout', 'record']),
  rounds: table('group_rounds', ['group', 'round', 'record', 'opened_at']),
  slots: table('group_slots', ['group', 'slot', 'round', 'job', 'key']),
  settled: table('settled_rounds', ['group', 'round', 'record', 'at']),
  runEvents: table('run_events', ['seq', 'run', 'kind', 'at', 'data']),
  incarnations: table('trainer_incarnations', ['run', 'incarnation', 'resume_step', 'undone_from', 'consumer']),
  checkpoints: table('trainer_checkpoints', ['run', 'incarnation', 'step']),
  claims: table('round_claims', ['id', 'run', 'group', 'round', 'incarnation', 'consumer', 'again', 'live_ordinal']),
  claimPolicies: table('claim_policies', ['claim', 'policy']),
  handed: table('handed_rows', ['claim', 'row', 'labels']),
  dispositions: table('dispositions', ['run', 'incarnation', 'step', 'row', 'use', 'record']),
  metrics: table('trainer_metrics', ['run', 'incarnation', 'step', 'record']),
  versions: table('trainer_versions', ['run', 'ordinal', 'label', 'incarnation', 'step']),
  closedRuns: table('closed_runs', ['run']),
  fingerprints: table('fingerprints', ['id', 'record']),
  tokenTexts: table('token_texts', ['tokenizer', 'token', 'bytes']),
  verifications: table('verifications', ['id', 'record']),
  archived: table('archived_sessions', [
    'session',
    'count',
    'folder',
    'home',
    'rollout',
    'of_rollout',
    'object',
    'head',
  ]),
} as const

/** Tables that came after the first schema. */
const later: readonly CoveredTable[] = [
  catalogueTables.verifications,
  catalogueTables.archived,
  catalogueTables.claimPolicies,
]

function table<const Column extends string>(name: string, columns: readonly Column[]): CoveredTable<Column> {
  return { name, columns, scope: 'table' }
}

function ofRollout<const Column extends string>(name: string, columns: readonly Column[]): CoveredTable<Column> {
  return { name, columns, scope: 'rollout' }
}

/** Counts the rows of a table as they come, so that one that is gone is missed. */
function counting({ name, scope }: CoveredTable): string {
  return `
  CREATE TRIGGER ${name}_covered AFTER INSERT ON ${name} BEGIN
    INSERT INTO covered (scope, count, sum) VALUES (${scope === 'table' ? `'${name}'` : 'NEW.rollout'}, 1, NEW.digest)
      ON CONFLICT (scope) DO UPDATE SET count = count + 1, sum = sum + excluded.sum;
  END;`
}

/** The catalogue's and the queue's schema, forward steps only. Ids are text here: they are few and looked up by prefix. */
export const catalogueMigrations: readonly Migration[] = [
  `
  -- Number of rows and sum of their digests, by rollout or table.
  CREATE TABLE covered (scope TEXT PRIMARY KEY, count INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- The log as of its last durable round (recorder/heads-book.ts): which it is, how far its journal was ingested, its
  -- events; and how many records each session has, and what their digests come to.
  CREATE TABLE log_state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    ingested_to INTEGER NOT NULL,
    events INTEGER NOT NULL,
    events_head INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE log_heads (
    id ANY PRIMARY KEY NOT NULL,
    rollout ANY,
    count INTEGER NOT NULL,
    head INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE tasks (
    n INTEGER PRIMARY KEY,
    task TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE runs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE groups (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL REFERENCES runs (id),
    task TEXT NOT NULL REFERENCES tasks (task),
    record TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX groups_run ON groups (run, n);
  CREATE TABLE rollouts (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL REFERENCES runs (id),
    "group" TEXT NOT NULL REFERENCES groups (id),
    slot INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    record TEXT NOT NULL,
    digest INTEGER NOT NULL,
    UNIQUE (run, "group", slot, attempt)
  ) STRICT;
  CREATE INDEX rollouts_group ON rollouts ("group", n);
  CREATE TABLE rollout_starts (
    rollout TEXT PRIMARY KEY REFERENCES rollouts (id),
    at INTEGER NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE rollout_works (
    rollout TEXT PRIMARY KEY REFERENCES rollouts (id),
    record TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE rollout_ends (
    rollout TEXT PRIMARY KEY REFERENCES rollouts (id),
    at INTEGER NOT NULL,
    end TEXT NOT NULL,
    detail TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE taints (
    n INTEGER PRIMARY KEY,
    rollout TEXT NOT NULL REFERENCES rollouts (id),
    cause TEXT NOT NULL,
    digest INTEGER NOT NULL,
    UNIQUE (rollout, cause)
  ) STRICT;
  CREATE TABLE labels (
    n INTEGER PRIMARY KEY,
    rollout TEXT NOT NULL REFERENCES rollouts (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX labels_rollout ON labels (rollout, n);
  CREATE TABLE verdicts (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    rollout TEXT NOT NULL REFERENCES rollouts (id),
    record TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX verdicts_rollout ON verdicts (rollout, n);
  CREATE TABLE group_rounds (
    "group" TEXT NOT NULL REFERENCES groups (id),
    round INTEGER NOT NULL,
    record TEXT NOT NULL,
    opened_at REAL NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY ("group", round)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE group_slots (
    "group" TEXT NOT NULL,
    slot INTEGER NOT NULL,
    round INTEGER NOT NULL,
    job TEXT NOT NULL UNIQUE,
    key TEXT,
    digest INTEGER NOT NULL,
    PRIMARY KEY ("group", slot),
    UNIQUE ("group", key),
    FOREIGN KEY ("group", round) REFERENCES group_rounds ("group", round)
  ) STRICT;
  -- One row per settled round, never changed.
  CREATE TABLE settled_rounds (
    "group" TEXT NOT NULL,
    round INTEGER NOT NULL,
    record TEXT NOT NULL,
    at REAL NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY ("group", round),
    FOREIGN KEY ("group", round) REFERENCES group_rounds ("group", round)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE run_events (
    seq INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    data TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX run_events_run ON run_events (run, seq);
  CREATE INDEX run_events_policy ON run_events (seq) WHERE kind GLOB 'policy_*';
  -- A trainer's clock: what a later incarnation went back behind is undone. -1: all of it.
  CREATE TABLE trainer_incarnations (
    run TEXT NOT NULL REFERENCES runs (id),
    incarnation INTEGER NOT NULL,
    resume_step INTEGER,
    undone_from INTEGER NOT NULL,
    consumer TEXT,
    digest INTEGER NOT NULL,
    PRIMARY KEY (run, incarnation)
  ) STRICT;
  CREATE TABLE trainer_checkpoints (
    run TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    step INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (run, step, incarnation)
  ) STRICT;
  CREATE TABLE round_claims (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    "group" TEXT NOT NULL,
    round INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    again INTEGER NOT NULL,
    live_ordinal INTEGER,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX round_claims_round ON round_claims ("group", round, n);
  CREATE TABLE handed_rows (
    claim TEXT NOT NULL REFERENCES round_claims (id),
    "row" TEXT NOT NULL,
    labels TEXT NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (claim, "row")
  ) STRICT;
  CREATE INDEX handed_rows_row ON handed_rows ("row");
  CREATE TABLE dispositions (
    run TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    step INTEGER NOT NULL,
    "row" TEXT NOT NULL,
    use INTEGER NOT NULL,
    record TEXT NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (run, incarnation, step, "row", use)
  ) STRICT;
  CREATE INDEX dispositions_row ON dispositions ("row");
  CREATE TABLE trainer_metrics (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    incarnation INTEGER NOT NULL,
    step INTEGER NOT NULL,
    record TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX trainer_metrics_run ON trainer_metrics (run, step, incarnation, n);
  CREATE TABLE trainer_versions (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    ordinal INTEGER NOT NULL,
    label TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    step INTEGER,
    digest INTEGER NOT NULL,
    UNIQUE (run, label)
  ) STRICT;
  CREATE TABLE closed_runs (run TEXT PRIMARY KEY REFERENCES runs (id), digest INTEGER NOT NULL) STRICT;
  CREATE TABLE fingerprints (id TEXT PRIMARY KEY, record TEXT NOT NULL, digest INTEGER NOT NULL) STRICT;
  CREATE TABLE token_texts (
    tokenizer TEXT NOT NULL,
    token INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (tokenizer, token)
  ) STRICT, WITHOUT ROWID;
  ${Object.values(catalogueTables)
    .filter((one) => !later.includes(one))
    .map(counting)
    .join('')}

  -- Where each settled round is: 'ready', 'claimed', 'done', 'stale' (its weights are gone) or 'failed'. In order of settling.
  CREATE TABLE handouts (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    "group" TEXT NOT NULL,
    round INTEGER NOT NULL,
    state TEXT NOT NULL,
    claim TEXT,
    expires_at REAL,
    again INTEGER NOT NULL DEFAULT 0,
    UNIQUE ("group", round)
  ) STRICT;
  CREATE TRIGGER handouts_settled AFTER INSERT ON settled_rounds BEGIN
    INSERT INTO handouts (run, "group", round, state) VALUES (NEW.record ->> '$.runId', NEW."group", NEW.round,
      CASE NEW.record ->> '$.state' WHEN 'settled' THEN 'ready' ELSE 'failed' END);
  END;
  CREATE INDEX handouts_open ON handouts (run, n) WHERE state IN ('ready', 'claimed');
  CREATE INDEX handouts_run ON handouts (run, state);
  -- Which row trains a sampled segment.
  CREATE TABLE owned_segments (
    run TEXT NOT NULL,
    segment TEXT NOT NULL,
    "row" TEXT NOT NULL,
    "group" TEXT NOT NULL,
    round INTEGER NOT NULL,
    PRIMARY KEY (run, segment)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX owned_segments_round ON owned_segments ("group", round);

  CREATE TABLE node_sessions (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at REAL NOT NULL
  ) STRICT;
  -- Whoever holds (token, session) of a row may hand it in, whatever its state; only a claim overwrites the two.
  CREATE TABLE jobs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    topic TEXT NOT NULL,
    run TEXT,
    "group" TEXT,
    payload TEXT NOT NULL,
    needs TEXT NOT NULL,
    max_attempts INTEGER,
    priority INTEGER NOT NULL,
    started INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'ready',
    available_at REAL NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    session TEXT,
    request TEXT,
    cancel_asked INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX jobs_ready ON jobs (topic, priority DESC, started DESC, n) WHERE state = 'ready';
  CREATE INDEX jobs_leased ON jobs (session) WHERE state = 'leased';
  CREATE INDEX jobs_group ON jobs ("group", n);
  CREATE INDEX jobs_run ON jobs (run, n);
  CREATE TABLE hand_ins (
    job INTEGER NOT NULL REFERENCES jobs (n),
    token INTEGER NOT NULL,
    session TEXT NOT NULL,
    digest TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (job, token)
  ) STRICT, WITHOUT ROWID;
  `,
  sqliteMemory,
  `
  CREATE TABLE verifications (id TEXT PRIMARY KEY, record TEXT NOT NULL, digest INTEGER NOT NULL) STRICT;
  ${counting(catalogueTables.verifications)}
  `,
  // Rollouts of a run, and what its trainer was handed and said, in the order in which they came: read on from where one was.
  `
  ALTER TABLE dispositions RENAME TO dispositions_before;
  CREATE TABLE dispositions (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    step INTEGER NOT NULL,
    "row" TEXT NOT NULL,
    use INTEGER NOT NULL,
    record TEXT NOT NULL,
    digest INTEGER NOT NULL,
    UNIQUE (run, incarnation, step, "row", use)
  ) STRICT;
  INSERT INTO dispositions (run, incarnation, step, "row", use, record, digest)
    SELECT run, incarnation, step, "row", use, record, digest FROM dispositions_before ORDER BY rowid;
  DROP TABLE dispositions_before;
  ${counting(catalogueTables.dispositions)}
  CREATE INDEX dispositions_row ON dispositions ("row");
  CREATE INDEX dispositions_run ON dispositions (run, n);
  CREATE INDEX rollouts_run ON rollouts (run, n);
  CREATE INDEX round_claims_run ON round_claims (run, n);
  CREATE INDEX trainer_metrics_came ON trainer_metrics (run, n);
  CREATE INDEX trainer_versions_came ON trainer_versions (run, n);
  CREATE INDEX run_events_settled ON run_events (run, seq) WHERE kind = 'group_settled';
  `,
  sqliteUsedAt,
  // Where the records of finished sessions are. The last row of a session is in force.
  `
  CREATE TABLE archived_sessions (
    n INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    count INTEGER NOT NULL,
    folder TEXT NOT NULL,
    home TEXT NOT NULL,
    rollout TEXT,
    of_rollout INTEGER NOT NULL,
    object TEXT NOT NULL,
    head INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    UNIQUE (session, count, folder)
  ) STRICT;
  CREATE INDEX archived_sessions_rollout ON archived_sessions (rollout);
  CREATE INDEX archived_sessions_object ON archived_sessions (object);
  ${counting(catalogueTables.archived)}
  `,
  // Each of several policies of a run has a hand-out of its own of each round; '': there is one.
  `
  DROP TRIGGER handouts_settled;
  CREATE TABLE handouts_by_policy (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    "group" TEXT NOT NULL,
    round INTEGER NOT NULL,
    policy TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    claim TEXT,
    expires_at REAL,
    again INTEGER NOT NULL DEFAULT 0,
    UNIQUE ("group", round, policy)
  ) STRICT;
  INSERT INTO handouts_by_policy (n, run, "group", round, state, claim, expires_at, again)
    SELECT n, run, "group", round, state, claim, expires_at, again FROM handouts;
  DROP TABLE handouts;
  ALTER TABLE handouts_by_policy RENAME TO handouts;
  CREATE TRIGGER handouts_settled AFTER INSERT ON settled_rounds BEGIN
    INSERT INTO handouts (run, "group", round, policy, state)
      SELECT NEW.record ->> '$.runId', NEW."group", NEW.round, value,
        CASE NEW.record ->> '$.state' WHEN 'settled' THEN 'ready' ELSE 'failed' END
      FROM json_each(coalesce(NEW.record -> '$.policies', '[""]'));
  END;
  CREATE INDEX handouts_open ON handouts (run, n) WHERE state IN ('ready', 'claimed');
  CREATE INDEX handouts_run ON handouts (run, state);
  CREATE TABLE claim_policies (
    claim TEXT PRIMARY KEY REFERENCES round_claims (id),
    policy TEXT NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  ${counting(catalogueTables.claimPolicies)}
  `,
  // A lease is its length and a count of renewals: each process waits by its own clock.
  `
  ALTER TABLE handouts RENAME COLUMN expires_at TO lease_ms;
  UPDATE handouts SET lease_ms = 300000 WHERE state = 'claimed';
  ALTER TABLE handouts ADD COLUMN renewals INTEGER NOT NULL DEFAULT 0;
  `,
]
