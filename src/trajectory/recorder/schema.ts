import type { Migration } from '../sqlite/index.ts'

/**
 * The log's schema, forward steps only. Integers `n` join tables inside this file and never leave it; `id` columns hold
 * UUIDs. Nothing is updated or deleted: an end, a delivery and a supersession are rows of their own.
 */
export const logMigrations: readonly Migration[] = [
  `
  CREATE TABLE sessions (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    rollout ANY,
    created_at INTEGER NOT NULL,
    record TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sessions_rollout ON sessions (rollout, n);

  CREATE TABLE session_ends (
    session INTEGER PRIMARY KEY REFERENCES sessions (n),
    at INTEGER NOT NULL
  ) STRICT;

  -- Intents. pack: facts and body as differences from call base, in one frame (recorder/bodies.ts).
  CREATE TABLE calls (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (n),
    seq INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    request_digest ANY NOT NULL,
    base INTEGER REFERENCES calls (n),
    depth INTEGER NOT NULL,
    facts_prefix INTEGER NOT NULL,
    facts_suffix INTEGER NOT NULL,
    body_prefix INTEGER NOT NULL,
    body_suffix INTEGER NOT NULL,
    body_sha256 BLOB NOT NULL,
    pack BLOB NOT NULL,
    UNIQUE (session, seq)
  ) STRICT;

  -- pack: outcome, reply marks, small token columns and reply in one frame (recorder/outcome.ts).
  CREATE TABLE outcomes (
    call INTEGER PRIMARY KEY REFERENCES calls (n),
    ended_at INTEGER NOT NULL,
    pack BLOB NOT NULL
  ) STRICT;

  CREATE TABLE deliveries (
    n INTEGER PRIMARY KEY,
    call INTEGER NOT NULL REFERENCES calls (n),
    delivery TEXT NOT NULL
  ) STRICT;
  CREATE INDEX deliveries_call ON deliveries (call, n);

  CREATE TABLE supersessions (
    call INTEGER PRIMARY KEY REFERENCES calls (n),
    by ANY NOT NULL
  ) STRICT;

  -- A parent stands before its children in n. origin: place in recorder/segments.ts.
  CREATE TABLE segments (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (n),
    call INTEGER REFERENCES calls (n),
    choice INTEGER,
    parent INTEGER REFERENCES segments (n),
    parent_offset INTEGER,
    origin INTEGER NOT NULL,
    stop_cut INTEGER NOT NULL,
    length INTEGER NOT NULL,
    ids BLOB NOT NULL,
    logprobs BLOB,
    flags BLOB
  ) STRICT;
  CREATE INDEX segments_session ON segments (session, n);

  CREATE TABLE events (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    rollout ANY,
    session ANY,
    event TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_rollout ON events (rollout, n);
  CREATE INDEX events_session ON events (session, n);
  `,
  `
  -- How far the journal is ingested (recorder/ingest.ts), one row.
  CREATE TABLE journal (
    generation INTEGER NOT NULL,
    taken_to INTEGER NOT NULL
  ) STRICT;
  INSERT INTO journal VALUES (0, 0);

  -- Entries of the journal that did not fit the log, with all that they held.
  CREATE TABLE refusals (
    n INTEGER PRIMARY KEY,
    head TEXT NOT NULL,
    bytes BLOB,
    why TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- Token columns of the call's segments in one frame (recorder/columns.ts); null: they are small and in pack. Segments
  -- of before have frames of their own.
  ALTER TABLE outcomes ADD COLUMN columns BLOB;
  `,
  `
  -- A call's end in one row, its segments with it; outcomes and segments have rows of before only. nth: order of the ends.
  -- delivery: what was told before the row was written, else in deliveries. segments: recorder/segment-list.ts. pack and
  -- columns: as in outcomes. What is looked at without the rest stands before pack, which may be on pages of its own.
  CREATE TABLE call_ends (
    call INTEGER PRIMARY KEY REFERENCES calls (n),
    nth INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    delivery TEXT,
    segments BLOB NOT NULL,
    pack BLOB NOT NULL,
    columns BLOB
  ) STRICT;
  -- How many rows call_ends has.
  ALTER TABLE journal ADD COLUMN ends INTEGER NOT NULL DEFAULT 0;
  `,
]
