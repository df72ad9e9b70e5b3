/**
 * Catalogue and trainer's book: the tables of `catalogue/schema.ts`. Ids are compared by their bytes, so that a prefix is a
 * range; texts that may be long are unique by a digest, which fits into an index. A row that was changed is found by its
 * digest; that none is missing is the database's own affair, as a counter per table would be a row that all writers wait for.
 */
export const catalogueSchema = `
  -- What hand-ins said while there were no rollouts here.
  DROP TABLE paddock.rollout_ends, paddock.taints, paddock.verdicts;

  CREATE TABLE paddock.tasks (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task text NOT NULL UNIQUE,
    record text NOT NULL,
    digest integer NOT NULL
  );
  CREATE TABLE paddock.runs (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    record text NOT NULL,
    digest integer NOT NULL
  );
  CREATE TABLE paddock.groups (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    run text COLLATE "C" NOT NULL REFERENCES paddock.runs (id),
    task text NOT NULL REFERENCES paddock.tasks (task),
    record text NOT NULL,
    digest integer NOT NULL
  );
  CREATE INDEX groups_run ON paddock.groups (run, n);
  CREATE TABLE paddock.rollouts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    run text COLLATE "C" NOT NULL REFERENCES paddock.runs (id),
    "group" text COLLATE "C" NOT NULL REFERENCES paddock.groups (id),
    slot integer NOT NULL,
    attempt integer NOT NULL,
    record text NOT NULL,
    digest integer NOT NULL,
    UNIQUE (run, "group", slot, attempt)
  );
  CREATE INDEX rollouts_group ON paddock.rollouts ("group", n);
  CREATE TABLE paddock.rollout_starts (
    rollout text COLLATE "C" PRIMARY KEY REFERENCES paddock.rollouts (id),
    at float8 NOT NULL,
    digest integer NOT NULL
  );
  CREATE TABLE paddock.rollout_works (
    rollout text COLLATE "C" PRIMARY KEY REFERENCES paddock.rollouts (id),
    record text NOT NULL,
    digest integer NOT NULL
  );
  CREATE TABLE paddock.rollout_ends (
    rollout text COLLATE "C" PRIMARY KEY REFERENCES paddock.rollouts (id),
    at float8 NOT NULL,
    "end" text NOT NULL,
    detail text NOT NULL,
    digest integer NOT NULL
  );
  CREATE TABLE paddock.taints (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rollout text COLLATE "C" NOT NULL REFERENCES paddock.rollouts (id),
    cause text NOT NULL,
    digest integer NOT NULL
  );
  CREATE UNIQUE INDEX taints_once ON paddock.taints (rollout, md5(cause));
  CREATE TABLE paddock.labels (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rollout text COLLATE "C" NOT NULL REFERENCES paddock.rollouts (id),
    name text NOT NULL,
    value text NOT NULL,
    digest integer NOT NULL
  );
  CREATE INDEX labels_rollout ON paddock.labels (rollout, n);
  CREATE TABLE paddock.verdicts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    rollout text COLLATE "C" NOT NULL REFERENCES paddock.rollouts (id),
    record text NOT NULL,
    digest integer NOT NULL
  );
  CREATE INDEX verdicts_rollout ON paddock.verdicts (rollout, n);
  CREATE TABLE paddock.group_rounds (
    "group" text COLLATE "C" NOT NULL REFERENCES paddock.groups (id),
    round integer NOT NULL,
    record text NOT NULL,
    opened_at float8 NOT NULL,
    digest integer NOT NULL,
    PRIMARY KEY ("group", round)
  );
  CREATE TABLE paddock.group_slots (
    "group" text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    round integer NOT NULL,
    job text NOT NULL UNIQUE,
    key text,
    digest integer NOT NULL,
    PRIMARY KEY ("group", slot),
    FOREIGN KEY ("group", round) REFERENCES paddock.group_rounds ("group", round)
  );
  CREATE UNIQUE INDEX group_slots_key ON paddock.group_slots ("group", md5(key));
  -- One row per settled round, never changed.
  CREATE TABLE paddock.settled_rounds (
    "group" text COLLATE "C" NOT NULL,
    round integer NOT NULL,
    record text NOT NULL,
    at float8 NOT NULL,
    digest integer NOT NULL,
    PRIMARY KEY ("group", round),
    FOREIGN KEY ("group", round) REFERENCES paddock.group_rounds ("group", round)
  );
  -- Numbers are given while the run is locked: those of one run are committed in their order.
  CREATE SEQUENCE paddock.run_events_seq;
  CREATE TABLE paddock.run_events (
    seq bigint PRIMARY KEY,
    run text COLLATE "C" NOT NULL REFERENCES paddock.runs (id),
    kind text NOT NULL,
    at float8 NOT NULL,
    data text NOT NULL,
    digest integer NOT NULL
  );
  CREATE INDEX run_events_run ON paddock.run_events (run, seq);
  CREATE INDEX run_events_policy ON paddock.run_events (seq) WHERE kind LIKE 'policy\\_%';
  -- A trainer's clock: what a later incarnation went back behind is undone. -1: all of it.
  CREATE TABLE paddock.trainer_incarnations (
    run text COLLATE "C" NOT NULL REFERENCES paddock.runs (id),
    incarnation integer NOT NULL,
    resume_step bigint,
    undone_from bigint NOT NULL,
    consumer text,
    digest integer NOT NULL,
    PRIMARY KEY (run, incarnation)
  );
  CREATE TABLE paddock.trainer_checkpoints (
    run text COLLATE "C" NOT NULL,
    incarnation integer NOT NULL,
    step bigint NOT NULL,
    digest integer NOT NULL,
    PRIMARY KEY (run, step, incarnation)
  );
  CREATE TABLE paddock.round_claims (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    run text COLLATE "C" NOT NULL,
    "group" text COLLATE "C" NOT NULL,
    round integer NOT NULL,
    incarnation integer NOT NULL,
    consumer text NOT NULL,
    again integer NOT NULL,
    live_ordinal bigint,
    digest integer NOT NULL
  );
  CREATE INDEX round_claims_round ON paddock.round_claims ("group", round, n);
  CREATE TABLE paddock.handed_rows (
    claim text NOT NULL REFERENCES paddock.round_claims (id),
    "row" text COLLATE "C" NOT NULL,
    labels text NOT NULL,
    digest integer NOT NULL,
    PRIMARY KEY (claim, "row")
  );
  CREATE INDEX handed_rows_row ON paddock.handed_rows ("row");
  CREATE TABLE paddock.dispositions (
    run text COLLATE "C" NOT NULL,
    incarnation integer NOT NULL,
    step bigint NOT NULL,
    "row" text COLLATE "C" NOT NULL,
    use integer NOT NULL,
    record text NOT NULL,
    digest integer NOT NULL,
    PRIMARY KEY (run, incarnation, step, "row", use)
  );
  CREATE INDEX dispositions_row ON paddock.dispositions ("row");
  CREATE TABLE paddock.trainer_metrics (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL REFERENCES paddock.runs (id),
    incarnation integer NOT NULL,
    step bigint NOT NULL,
    record text NOT NULL,
    digest integer NOT NULL
  );
  CREATE INDEX trainer_metrics_run ON paddock.trainer_metrics (run, step, incarnation, n);
  CREATE TABLE paddock.trainer_versions (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL REFERENCES paddock.runs (id),
    ordinal bigint NOT NULL,
    label text NOT NULL,
    incarnation integer NOT NULL,
    step bigint,
    digest integer NOT NULL
  );
  CREATE UNIQUE INDEX trainer_versions_label ON paddock.trainer_versions (run, md5(label));
  CREATE TABLE paddock.closed_runs (
    run text COLLATE "C" PRIMARY KEY REFERENCES paddock.runs (id),
    digest integer NOT NULL
  );
  CREATE TABLE paddock.fingerprints (id text PRIMARY KEY, record text NOT NULL, digest integer NOT NULL);
  CREATE TABLE paddock.token_texts (
    tokenizer text NOT NULL,
    token integer NOT NULL,
    bytes bytea NOT NULL,
    digest integer NOT NULL,
    PRIMARY KEY (tokenizer, token)
  );

  -- Where each settled round is: 'ready', 'claimed', 'done', 'stale' (its weights are gone) or 'failed'. In order of settling.
  CREATE TABLE paddock.handouts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    "group" text COLLATE "C" NOT NULL,
    round integer NOT NULL,
    state text NOT NULL,
    claim text,
    expires_at float8,
    again integer NOT NULL DEFAULT 0,
    UNIQUE ("group", round)
  );
  CREATE FUNCTION paddock.handouts_settled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO paddock.handouts (run, "group", round, state) VALUES (NEW.record::json ->> 'runId', NEW."group", NEW.round,
      CASE NEW.record::json ->> 'state' WHEN 'settled' THEN 'ready' ELSE 'failed' END);
    RETURN NULL;
  END $$;
  CREATE TRIGGER handouts_settled AFTER INSERT ON paddock.settled_rounds
    FOR EACH ROW EXECUTE FUNCTION paddock.handouts_settled();
  CREATE INDEX handouts_open ON paddock.handouts (run, n) WHERE state IN ('ready', 'claimed');
  CREATE INDEX handouts_run ON paddock.handouts (run, state);
  -- Which row trains a sampled segment.
  CREATE TABLE paddock.owned_segments (
    run text COLLATE "C" NOT NULL,
    segment text NOT NULL,
    "row" text COLLATE "C" NOT NULL,
    "group" text COLLATE "C" NOT NULL,
    round integer NOT NULL,
    PRIMARY KEY (run, segment)
  );
  CREATE INDEX owned_segments_round ON paddock.owned_segments ("group", round);
`
