/** Which database it is, which data directories write into it, and whose each run is. */
export const homesSchema = `
  CREATE TABLE paddock.identity (one integer PRIMARY KEY CHECK (one = 1), id text NOT NULL);
  INSERT INTO paddock.identity (one, id) VALUES (1, gen_random_uuid()::text);
  -- By the identity of its log. The name is for people.
  CREATE TABLE paddock.data_directories (id text PRIMARY KEY, name text NOT NULL);
  CREATE TABLE paddock.run_homes (
    run text COLLATE "C" PRIMARY KEY REFERENCES paddock.runs (id),
    home text NOT NULL REFERENCES paddock.data_directories (id)
  );
  CREATE INDEX run_homes_home ON paddock.run_homes (home);
`
