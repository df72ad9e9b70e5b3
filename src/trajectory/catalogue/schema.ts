import type { Migration } from '../sqlite/index.ts'

/** The catalogue's and the queue's schema, forward steps only. Ids are text here: they are few and looked up by prefix. */
export const catalogueMigrations: readonly Migration[] = [
  `
  CREATE TABLE tasks (n INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, record TEXT NOT NULL) STRICT;
  CREATE TABLE runs (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL) STRICT;
  CREATE TABLE groups (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL REFERENCES runs (id),
    task TEXT NOT NULL REFERENCES tasks (digest),
    record TEXT NOT NULL
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
    UNIQUE (run, "group", slot, attempt)
  ) STRICT;
  CREATE INDEX rollouts_group ON rollouts ("group", n);
  CREATE TABLE rollout_starts (rollout TEXT PRIMARY KEY REFERENCES rollouts (id), at INTEGER NOT NULL) STRICT;
  CREATE TABLE rollout_ends (
    rollout TEXT PRIMARY KEY REFERENCES rollouts (id),
    at INTEGER NOT NULL,
    end TEXT NOT NULL,
    detail TEXT NOT NULL
  ) STRICT;
  CREATE TABLE taints (
    n INTEGER PRIMARY KEY,
    rollout TEXT NOT NULL REFERENCES rollouts (id),
    cause TEXT NOT NULL,
    UNIQUE (rollout, cause)
  ) STRICT;
  CREATE TABLE labels (
    n INTEGER PRIMARY KEY,
    rollout TEXT NOT NULL REFERENCES rollouts (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL
  ) STRICT;
  CREATE INDEX labels_rollout ON labels (rollout, n);
  CREATE TABLE verdicts (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    rollout TEXT NOT NULL REFERENCES rollouts (id),
    record TEXT NOT NULL
  ) STRICT;
  CREATE INDEX verdicts_rollout ON verdicts (rollout, n);
  CREATE TABLE fingerprints (digest TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
  CREATE TABLE token_texts (
    tokenizer TEXT NOT NULL,
    token INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (tokenizer, token)
  ) STRICT, WITHOUT ROWID;

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
]
