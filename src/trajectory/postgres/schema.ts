import { PaddockError } from '../../core/index.ts'
import { postgresMemory, postgresUsedAt } from '../memory/index.ts'
import { catalogueSchema } from './catalogue-schema.ts'
import type { Connection } from './connection.ts'
import { homesSchema } from './homes-schema.ts'

/**
 * Forward steps only; the version of a schema is their number. Everything lies in the schema `paddock`. Payloads and
 * records are text, because `jsonb` takes no `\u0000`. No index holds a time: a beat changes no index (a HOT update).
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE paddock.node_sessions (
    id text PRIMARY KEY,
    name text NOT NULL,
    labels jsonb NOT NULL,
    state text NOT NULL,
    expires_at timestamptz NOT NULL
  ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.01);

  -- Whoever holds (token, session) of a row may hand it in, whatever its state; only a claim overwrites the two.
  CREATE TABLE paddock.jobs (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    topic text NOT NULL,
    run text,
    "group" text,
    payload text NOT NULL,
    needs jsonb NOT NULL,
    max_attempts integer,
    priority double precision NOT NULL,
    started boolean NOT NULL,
    state text NOT NULL DEFAULT 'ready',
    available_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    token integer NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    session text,
    request text,
    cancel_asked boolean NOT NULL DEFAULT false
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
  CREATE INDEX jobs_ready ON paddock.jobs (topic, priority DESC, started DESC, n) WHERE state = 'ready';
  CREATE INDEX jobs_leased ON paddock.jobs (session) WHERE state = 'leased';
  CREATE INDEX jobs_group ON paddock.jobs ("group", n) WHERE "group" IS NOT NULL;
  CREATE INDEX jobs_run ON paddock.jobs (run, n) WHERE run IS NOT NULL;

  CREATE TABLE paddock.hand_ins (
    job bigint NOT NULL REFERENCES paddock.jobs (n),
    token integer NOT NULL,
    session text NOT NULL,
    digest text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, token)
  );

  -- What was handed in, only ever appended.
  CREATE TABLE paddock.rollout_ends (
    rollout text PRIMARY KEY,
    at double precision NOT NULL,
    "end" text NOT NULL,
    detail text NOT NULL
  );
  CREATE TABLE paddock.taints (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rollout text NOT NULL,
    cause text NOT NULL,
    UNIQUE (rollout, cause)
  );
  CREATE TABLE paddock.verdicts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    rollout text NOT NULL,
    record text NOT NULL
  );
  CREATE INDEX verdicts_rollout ON paddock.verdicts (rollout, n);
  `,
  catalogueSchema,
  homesSchema,
  postgresMemory,
  'CREATE TABLE paddock.verifications (id text PRIMARY KEY, record text NOT NULL, digest integer NOT NULL)',
  // Rollouts of a run, and what its trainer was handed and said, in the order in which they came. Who writes a run has locked it, so that order is the order of commits.
  `
  ALTER TABLE paddock.dispositions ADD COLUMN n bigint GENERATED ALWAYS AS IDENTITY;
  CREATE UNIQUE INDEX dispositions_came ON paddock.dispositions (run, n);
  CREATE INDEX rollouts_run ON paddock.rollouts (run, n);
  CREATE INDEX round_claims_run ON paddock.round_claims (run, n);
  CREATE INDEX trainer_metrics_came ON paddock.trainer_metrics (run, n);
  CREATE INDEX trainer_versions_came ON paddock.trainer_versions (run, n);
  CREATE INDEX run_events_settled ON paddock.run_events (run, seq) WHERE kind = 'group_settled';
  `,
  postgresUsedAt,
  // Where the records of finished sessions are. The last row of a session is in force.
  `
  CREATE TABLE paddock.archived_sessions (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    count integer NOT NULL,
    folder text NOT NULL,
    home text NOT NULL,
    rollout text COLLATE "C",
    of_rollout integer NOT NULL,
    object text NOT NULL,
    head integer NOT NULL,
    digest integer NOT NULL,
    UNIQUE (session, count, folder)
  );
  CREATE INDEX archived_sessions_rollout ON paddock.archived_sessions (rollout);
  CREATE INDEX archived_sessions_object ON paddock.archived_sessions (object);
  CREATE INDEX archived_sessions_home ON paddock.archived_sessions (home);
  `,
  // Each of several policies of a run has a hand-out of its own of each round; '': there is one.
  `
  ALTER TABLE paddock.handouts ADD COLUMN policy text NOT NULL DEFAULT '';
  ALTER TABLE paddock.handouts DROP CONSTRAINT handouts_group_round_key;
  ALTER TABLE paddock.handouts ADD UNIQUE ("group", round, policy);
  CREATE OR REPLACE FUNCTION paddock.handouts_settled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO paddock.handouts (run, "group", round, policy, state)
      SELECT NEW.record::json ->> 'runId', NEW."group", NEW.round, value,
        CASE NEW.record::json ->> 'state' WHEN 'settled' THEN 'ready' ELSE 'failed' END
      FROM json_array_elements_text(coalesce(NEW.record::json -> 'policies', '[""]'::json)) AS policies (value);
    RETURN NULL;
  END $$;
  CREATE TABLE paddock.claim_policies (
    claim text PRIMARY KEY REFERENCES paddock.round_claims (id),
    policy text NOT NULL,
    digest integer NOT NULL
  );
  `,
  // A lease is its length and a count of renewals: each process waits by its own clock.
  `
  ALTER TABLE paddock.handouts RENAME COLUMN expires_at TO lease_ms;
  UPDATE paddock.handouts SET lease_ms = 300000 WHERE state = 'claimed';
  ALTER TABLE paddock.handouts ADD COLUMN renewals integer NOT NULL DEFAULT 0;
  `,
]

/** Serializes programs that start at once; of this program alone. */
const migrating = 0x70_61_64_64

/**
 * Brings the database to the newest schema in one transaction. Throws `STORE_SCHEMA` when it is newer than this program.
 * A role without the right to create is enough once the schema stands.
 */
export async function migrate(db: Connection): Promise<void> {
  await db.query('SELECT pg_advisory_xact_lock($1)', [migrating])
  const found = await schemaVersion(db)
  refuseNewer(found)
  if (found === 0) {
    await db.query('CREATE SCHEMA IF NOT EXISTS paddock')
    await db.query(
      'CREATE TABLE paddock.schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())',
    )
  }
  for (const [index, sql] of migrations.entries()) {
    if (index < found) continue
    await db.query(sql)
    await db.query('INSERT INTO paddock.schema_version (version) VALUES ($1)', [index + 1])
  }
}

/** For readers, which may not migrate. Throws `STORE_SCHEMA` unless the schema is exactly the one of this program. */
export async function requireSchema(db: Connection): Promise<void> {
  const found = await schemaVersion(db)
  refuseNewer(found)
  if (found === migrations.length) return
  throw new PaddockError(
    'STORE_SCHEMA',
    `the catalogue in PostgreSQL has schema ${found}, this program reads ${migrations.length}`,
    { fix: 'Open it once with `paddock serve`; it brings the schema forward.' },
  )
}

/** 0: there is none. */
export async function schemaVersion(db: Connection): Promise<number> {
  const [table] = await db.query<{ there: boolean }>(
    `SELECT to_regclass('paddock.schema_version') IS NOT NULL AS there`,
  )
  if (table?.there !== true) return 0
  const [row] = await db.query<{ version: number | null }>('SELECT max(version) AS version FROM paddock.schema_version')
  return row?.version ?? 0
}

function refuseNewer(found: number): void {
  if (found <= migrations.length) return
  throw new PaddockError(
    'STORE_SCHEMA',
    `the catalogue in PostgreSQL has schema ${found}, this program knows ${migrations.length}`,
  )
}
