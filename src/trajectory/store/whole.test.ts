import { copyFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { newId, sha256 } from '../../core/index.ts'
import { sessionFact } from '../../testing/store/index.ts'
import { fsck } from '../fsck/index.ts'
import { salvage } from '../salvage/index.ts'
import { migrate, rowDigest } from '../sqlite/index.ts'
import { openReader, openStore } from './index.ts'

let directory: string
beforeEach(async () => {
  directory = tempDir()
  await used(directory)
})

/** A closed store with one session. */
async function used(path: string): Promise<void> {
  await using store = await openStore(path)
  const session = sessionFact()
  await store.recorder.openSession(session)
  await store.recorder.closeSession(session.id, 1)
}

const log = (): string => join(directory, 'log.sqlite')
const catalogue = (): string => join(directory, 'catalogue.sqlite')

describe('a log that the catalogue remembers', () => {
  it.each<[string, () => Promise<void>, RegExp]>([
    ['is gone', () => rm(log()), /log\.sqlite is gone/],
    ['is empty', () => truncate(log(), 0), /log\.sqlite is empty/],
    [
      "is another store's",
      async () => {
        const other = tempDir()
        await used(other)
        await copyFile(join(other, 'log.sqlite'), log())
      },
      /of another data directory/,
    ],
    ['is no database', () => writeFile(log(), 'no database at all, however long this text is'), /cannot be read/],
    ['has lost its catalogue', () => rm(catalogue()), /catalogue\.sqlite is gone/],
    ['has an empty catalogue', () => truncate(catalogue(), 0), /catalogue\.sqlite is gone or empty/],
  ])('is not begun anew where it %s', async (_what, harm, why) => {
    await harm()
    const before = await readdir(directory)
    const refused = { code: 'STORE_CORRUPT', message: expect.stringMatching(why) as string }
    await expect(openStore(directory)).rejects.toMatchObject(refused)
    await expect(openReader(directory)).rejects.toMatchObject(refused)
    expect((await readdir(directory)).filter((name) => !name.endsWith('-shm') && !name.endsWith('-wal'))).toEqual(
      before,
    )
    expect((await fsck(directory)).problems.map(({ what }) => what).join('\n')).toMatch(why)
  })
})

/** What the schemas of the catalogue from the fourth on did is undone; the table is one without rows. */
const unnumbered = `
  DROP TABLE claim_policies; DROP TABLE archived_sessions;
  DROP TRIGGER handouts_settled; DROP TABLE handouts;
  CREATE TABLE handouts (
    n INTEGER PRIMARY KEY, run TEXT NOT NULL, "group" TEXT NOT NULL, round INTEGER NOT NULL, state TEXT NOT NULL,
    claim TEXT, expires_at REAL, again INTEGER NOT NULL DEFAULT 0, UNIQUE ("group", round)
  ) STRICT;
  CREATE TRIGGER handouts_settled AFTER INSERT ON settled_rounds BEGIN SELECT 1; END;
  INSERT INTO handouts VALUES (7, 'r', 'g', 0, 'claimed', 'c', 5, 1), (8, 'r', 'g', 1, 'ready', NULL, NULL, 0);
  ALTER TABLE memory_lines DROP COLUMN used_at;
  DROP INDEX rollouts_run; DROP INDEX round_claims_run; DROP INDEX trainer_metrics_came; DROP INDEX trainer_versions_came;
  DROP INDEX run_events_settled;
  DROP TABLE dispositions;
  CREATE TABLE dispositions (
    run TEXT NOT NULL, incarnation INTEGER NOT NULL, step INTEGER NOT NULL, "row" TEXT NOT NULL, use INTEGER NOT NULL,
    record TEXT NOT NULL, digest INTEGER NOT NULL, PRIMARY KEY (run, incarnation, step, "row", use)
  ) STRICT;
  CREATE TRIGGER dispositions_covered AFTER INSERT ON dispositions BEGIN
    INSERT INTO covered (scope, count, sum) VALUES ('dispositions', 1, NEW.digest)
      ON CONFLICT (scope) DO UPDATE SET count = count + 1, sum = sum + excluded.sum;
  END;
  CREATE INDEX dispositions_row ON dispositions ("row");`

describe('schemas', () => {
  it.each(['log.sqlite', 'catalogue.sqlite'])('of a newer program are refused by their number (%s)', async (file) => {
    const db = new Database(join(directory, file))
    db.prepare('INSERT INTO schema_version (version, applied_at) VALUES (99, 0)').run()
    db.close()
    const refused = { code: 'STORE_SCHEMA', message: expect.stringContaining('has schema 99') as string }
    await expect(openStore(directory)).rejects.toMatchObject(refused)
    await expect(openReader(directory)).rejects.toMatchObject(refused)
    await expect(fsck(directory)).rejects.toMatchObject(refused)
  })

  it('begin at 1, and go forward from there with what is stored', () => {
    const db = new Database(':memory:')
    const first = 'CREATE TABLE things (name TEXT NOT NULL) STRICT; INSERT INTO things VALUES (1)'
    migrate(db, [first], 0)
    migrate(db, [first, "ALTER TABLE things ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"], 0)
    expect(db.prepare('SELECT * FROM things').all()).toEqual([{ name: '1', colour: 'red' }])
    expect(db.prepare('SELECT version FROM schema_version').pluck().all()).toEqual([1, 2])
    db.close()
  })

  it('of the log before sessions were archived come forward, and salvage takes them as they are', async () => {
    const db = new Database(log())
    db.exec(`DROP VIEW session_calls; DROP TABLE archived_calls; DROP TABLE archived_sessions;
      DELETE FROM schema_version WHERE version >= 2`)
    db.close()
    const { lost, sessions } = await salvage(directory, join(directory, 'salvaged'))
    expect([lost, sessions.whole]).toEqual([[], 1])
    await rm(join(directory, 'salvaged'), { recursive: true })
    await expect(openReader(directory)).rejects.toMatchObject({ code: 'STORE_SCHEMA' })
    await (await openStore(directory)).close()
    expect((await fsck(directory)).problems).toEqual([])
  })

  it('of the catalogue before dispositions had numbers come forward with all of them, in order', async () => {
    const said = { use: 0, outcome: 'used', tokens: null, advantage: null, rewardUsed: 1, reason: null } as const
    const runId = newId()
    {
      await using store = await openStore(directory)
      await store.catalogue.putRun({ id: runId, name: 'r', createdAt: 1, config: {} })
    }
    const db = new Database(catalogue())
    db.exec(`${unnumbered} DELETE FROM schema_version WHERE version >= 4`)
    for (const step of [2, 1]) {
      const record = JSON.stringify({ ...said, row: `r:${step}`, step })
      const values = [runId, 1, step, `r:${step}`, 0, record]
      db.prepare('INSERT INTO dispositions VALUES (?, ?, ?, ?, ?, ?, ?)').run(...values, rowDigest(values))
    }
    db.close()
    {
      await using store = await openStore(directory)
      const news = await store.trainer.news(runId, { after: null, limit: 1 })
      expect([news.dispositions.map(({ step }) => step), news.isAll]).toEqual([[2], false])
      const rest = await store.trainer.news(runId, { after: news.place, limit: 9 })
      expect([rest.dispositions.map(({ step }) => step), rest.isAll]).toEqual([[1], true])
    }
    const after = new Database(catalogue())
    expect(
      after.prepare('SELECT n, run, "group", round, policy, state, claim, lease_ms, again FROM handouts').raw().all(),
    ).toEqual([
      [7, 'r', 'g', 0, '', 'claimed', 'c', 300_000, 1],
      [8, 'r', 'g', 1, '', 'ready', null, null, 0],
    ])
    after.close()
    expect((await fsck(directory)).problems).toEqual([])
  })

  it('of the catalogue before verifications and times of use come forward with what they hold, and salvage takes them as they are', async () => {
    const db = new Database(catalogue())
    db.exec(`${unnumbered} DROP TABLE verifications; DELETE FROM schema_version WHERE version >= 3`)
    db.close()
    const { lost, sessions } = await salvage(directory, join(directory, 'salvaged'))
    expect([lost, sessions.whole]).toEqual([[], 1])
    await rm(join(directory, 'salvaged'), { recursive: true })
    await expect(openReader(directory)).rejects.toMatchObject({ code: 'STORE_SCHEMA' })
    const verdict = {
      status: 'scored' as const,
      reward: 1,
      components: {},
      steps: [],
      evidence: '',
      artifacts: [],
      verifier: { id: 'v', version: '1', sha256: sha256('v') },
      trust: 'host' as const,
      costTokens: 0,
    }
    {
      await using store = await openStore(directory)
      expect(await store.recorder.sessions({})).toHaveLength(1)
      const about = { id: 'k', asked: sha256('a'), taskDigest: sha256('t'), at: 1, token: 'ann', verdict }
      expect(await store.catalogue.putVerification(about)).toEqual(about)
    }
    expect((await fsck(directory)).problems).toEqual([])
    // A verdict that was changed or removed is seen.
    const harmed = new Database(catalogue())
    harmed.exec(`UPDATE verifications SET record = replace(record, '"reward":1', '"reward":0')`)
    harmed.close()
    expect((await fsck(directory)).problems.map(({ where }) => where)).toContain('verifications k')
    await using store = await openStore(directory)
    await expect(store.catalogue.verification('k')).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })
})

it('a data directory and everything in it are closed to other users', async () => {
  const path = join(directory, 'new')
  {
    await using store = await openStore(path)
    await store.recorder.openSession(sessionFact())
    await store.blobs.put(Buffer.from('a blob'))
    const all = await readdir(path, { recursive: true, withFileTypes: true })
    expect(all.length).toBeGreaterThan(8)
    for (const entry of all) {
      const { mode } = await stat(join(entry.parentPath, entry.name))
      expect((mode & 0o777).toString(8), entry.name).toBe(entry.isDirectory() ? '700' : '600')
    }
  }
  expect((await stat(path)).mode & 0o777).toBe(0o700)
})
