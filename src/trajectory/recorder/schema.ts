import { type DigestedTable, type Migration, rowDigest } from '../sqlite/index.ts'

/**
 * The log's schema, forward steps only. Integers `n` join tables inside this file and never leave it; `id` columns hold
 * UUIDs. Nothing is updated or deleted: an end, a delivery and a supersession are rows of their own.
 *
 * Every record has a digest over its columns ({@link logTables}) and a place `nth` in the chain of its session, from 1
 * and without a gap; events are a chain of their own. How many records a chain has, and what its digests come to, is
 * remembered by the catalogue (recorder/heads-book.ts).
 */
export const logMigrations: readonly Migration[] = [
  `
  -- One row: which log this is. The catalogue remembers it.
  CREATE TABLE identity (id TEXT NOT NULL, digest INTEGER NOT NULL) STRICT;

  -- One row: how far the journal is ingested (recorder/ingest.ts), whether an owner writes it, and the chain of events.
  CREATE TABLE journal (
    generation INTEGER NOT NULL,
    ingested_to INTEGER NOT NULL,
    open INTEGER NOT NULL,
    events INTEGER NOT NULL,
    events_head INTEGER NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  INSERT INTO journal VALUES (0, 0, 0, 0, 0, ${rowDigest([0, 0, 0, 0, 0])});

  -- What of the journal did not fit the log or could not be read, with all that it held.
  CREATE TABLE refusals (n INTEGER PRIMARY KEY, head TEXT NOT NULL, bytes BLOB, why TEXT NOT NULL) STRICT;

  CREATE TABLE sessions (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    rollout ANY,
    created_at INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    record TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sessions_rollout ON sessions (rollout, n);

  CREATE TABLE session_ends (
    session INTEGER PRIMARY KEY REFERENCES sessions (n),
    at INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;

  -- Intents. pack: facts and body as differences from call base, in one frame (recorder/bodies.ts).
  CREATE TABLE calls (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (n),
    seq INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL,
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

  -- A call's end in one row, its segments with it. delivery: what was told before the row was written, else in deliveries.
  -- segments: recorder/segment-list.ts. pack: outcome, reply marks, small token columns and reply in one frame
  -- (recorder/outcome.ts). columns: token columns that have a frame of their own (recorder/columns.ts).
  -- What is looked at without the rest stands before pack, which may be on pages of its own.
  CREATE TABLE call_ends (
    call INTEGER PRIMARY KEY REFERENCES calls (n),
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    delivery TEXT,
    segments BLOB NOT NULL,
    pack BLOB NOT NULL,
    columns BLOB
  ) STRICT;

  CREATE TABLE deliveries (
    n INTEGER PRIMARY KEY,
    call INTEGER NOT NULL REFERENCES calls (n),
    delivery TEXT NOT NULL,
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX deliveries_call ON deliveries (call, n);

  CREATE TABLE supersessions (
    call INTEGER PRIMARY KEY REFERENCES calls (n),
    by ANY NOT NULL,
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE events (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    rollout ANY,
    session ANY,
    nth INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    event TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_rollout ON events (rollout, n);
  CREATE INDEX events_session ON events (session, n);
  `,
  `
  -- Sessions whose records are in an object (recorder/archived.ts): its digest, and their chain. What was told of them since
  -- stands in the tables of above, and goes on in that chain.
  CREATE TABLE archived_sessions (
    session INTEGER PRIMARY KEY REFERENCES sessions (n),
    object TEXT NOT NULL,
    count INTEGER NOT NULL,
    head INTEGER NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX archived_sessions_object ON archived_sessions (object);

  -- Their calls, as far as others name them. Numbers are below 0: those of the table of calls are given out again.
  CREATE TABLE archived_calls (
    n INTEGER PRIMARY KEY,
    id ANY NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (n),
    seq INTEGER NOT NULL,
    superseded INTEGER NOT NULL,
    segments BLOB NOT NULL,
    digest INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX archived_calls_session ON archived_calls (session);

  CREATE VIEW session_calls (n, id, session) AS
    SELECT n, id, session FROM calls UNION ALL SELECT n, id, session FROM archived_calls;
  `,
]

const callsOfSession = 'call IN (SELECT n FROM session_calls WHERE session = ?)'

/** The session of the call of id `?`. */
export const sessionOfCall =
  'SELECT sessions.id FROM session_calls c JOIN sessions ON sessions.n = c.session WHERE c.id = ?'

/** Tables of records: every column but `n` and `digest`. `session` finds the records of session `?`. */
export const logTables = {
  sessions: table('sessions', ['id', 'rollout', 'created_at', 'nth', 'record'], 'n = ?'),
  sessionEnds: table('session_ends', ['session', 'at', 'nth'], 'session = ?'),
  calls: table(
    'calls',
    [
      'id',
      'session',
      'seq',
      'nth',
      'started_at',
      'request_digest',
      'base',
      'depth',
      'facts_prefix',
      'facts_suffix',
      'body_prefix',
      'body_suffix',
      'body_sha256',
      'pack',
    ],
    'session = ?',
  ),
  callEnds: table('call_ends', ['call', 'nth', 'ended_at', 'delivery', 'segments', 'pack', 'columns'], callsOfSession),
  deliveries: table('deliveries', ['call', 'delivery', 'nth'], callsOfSession),
  supersessions: table('supersessions', ['call', 'by', 'nth'], callsOfSession),
} as const

/** What stays of sessions whose records are in an object. */
export const archivedTables = {
  sessions: { name: 'archived_sessions', columns: ['session', 'object', 'count', 'head'] },
  calls: { name: 'archived_calls', columns: ['n', 'id', 'session', 'seq', 'superseded', 'segments'] },
} as const satisfies Readonly<Record<string, DigestedTable>>

/** Events, a chain of their own. */
export const eventsTable: DigestedTable = {
  name: 'events',
  columns: ['id', 'at', 'rollout', 'session', 'nth', 'event'],
}

/** The row that says which log this is. */
export const identityTable: DigestedTable = { name: 'identity', columns: ['id'] }

/** The row that says how far the journal is ingested. */
export const journalTable: DigestedTable = {
  name: 'journal',
  columns: ['generation', 'ingested_to', 'open', 'events', 'events_head'],
}

/** A table of records of sessions. */
export interface RecordTable extends DigestedTable {
  readonly session: string
}

function table(name: string, columns: readonly string[], session: string): RecordTable {
  return { name, columns, session }
}
