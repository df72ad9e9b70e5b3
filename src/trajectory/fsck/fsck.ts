import { join, resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import { isPaddockError } from '../../core/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import type { StoreReader } from '../contract/index.ts'
import { logMigrations } from '../recorder/index.ts'
import { openForReading } from '../sqlite/index.ts'
import { liveOwner, openReader } from '../store/index.ts'
import { checkSession } from './session-checks.ts'

/** What a check found. `where` is a session, rollout, blob or file. */
export interface FsckReport {
  readonly problems: readonly { readonly where: string; readonly what: string }[]
  readonly counts: {
    readonly sessions: number
    readonly calls: number
    readonly segments: number
    readonly tokens: number
    readonly rollouts: number
    readonly blobs: number
  }
}

/**
 * Checks a data directory and never writes: database integrity, foreign keys, schema, each session's tree, lengths,
 * body digests, ends of calls, sessions of rollouts, verdict artifacts, blob digests. Works beside a live owner.
 * Throws `NOT_FOUND` and `STORE_SCHEMA`; everything else is a problem in the report.
 */
export async function fsck(directory: string): Promise<FsckReport> {
  const path = resolve(directory)
  const problems: { where: string; what: string }[] = []
  const counts = { sessions: 0, calls: 0, segments: 0, tokens: 0, rollouts: 0, blobs: 0 }
  const found = (where: string, what: string): void => void problems.push({ where, what })
  for (const [file, migrations] of [
    ['log.sqlite', logMigrations],
    ['catalogue.sqlite', catalogueMigrations],
  ] as const) {
    const db = openForReading(join(path, file), migrations)
    try {
      for (const what of databaseProblems(db)) found(file, what)
      if (file === 'log.sqlite') for (const what of refusals(db)) found(file, what)
    } finally {
      db.close()
    }
  }
  await using reader = await openReader(path)
  await checkSessions(reader, liveOwner(path) !== null, counts, found)
  await checkRollouts(reader, counts, found)
  for await (const { digest } of reader.blobs.list()) {
    counts.blobs += 1
    await reader.blobs.get(digest).catch((error: unknown) => found(`blob ${digest}`, messageOf(error)))
  }
  return { problems, counts }
}

type Found = (where: string, what: string) => void
type Counts = { -readonly [Name in keyof FsckReport['counts']]: number }

function databaseProblems(db: Database): string[] {
  const integrity = db.prepare('PRAGMA integrity_check(20)').pluck().all().map(String)
  const orphans = db.prepare('PRAGMA foreign_key_check').all().length
  return [
    ...integrity.filter((line) => line !== 'ok'),
    ...(orphans === 0 ? [] : [`${orphans} rows refer to rows that are not there`]),
  ]
}

/** Facts that were acknowledged and that the log then refused: they are kept, and nobody else reads them. */
function refusals(db: Database): string[] {
  return db
    .prepare<[], { head: string; why: string }>('SELECT head, why FROM refusals LIMIT 20')
    .all()
    .map(({ head, why }) => `an entry was refused (${why}): ${head.slice(0, 200)}`)
}

async function checkSessions(reader: StoreReader, live: boolean, counts: Counts, found: Found): Promise<void> {
  for (const session of await reader.recorder.sessions()) {
    counts.sessions += 1
    try {
      const log = await reader.recorder.session(session.id)
      counts.calls += log.calls.length
      counts.segments += log.segments.length
      for (const segment of log.segments) counts.tokens += segment.tokens.length
      for (const what of checkSession(log, live)) found(`session ${session.id}`, what)
      if (session.rolloutId !== null) {
        await reader.catalogue
          .rollout(session.rolloutId)
          .catch((error: unknown) => found(`session ${session.id}`, `its rollout: ${messageOf(error)}`))
      }
    } catch (error) {
      found(`session ${session.id}`, messageOf(error))
    }
  }
}

async function checkRollouts(reader: StoreReader, counts: Counts, found: Found): Promise<void> {
  for (const rollout of await reader.catalogue.rollouts({})) {
    counts.rollouts += 1
    const known = new Set<string>()
    for (const verdict of rollout.verdicts) {
      if (verdict.supersedes !== null && !known.has(verdict.supersedes)) {
        found(`rollout ${rollout.id}`, `verdict ${verdict.id} supersedes ${verdict.supersedes}, which is not there`)
      }
      known.add(verdict.id)
      for (const artifact of verdict.artifacts) {
        if (!(await reader.blobs.has(artifact.sha256))) {
          found(`rollout ${rollout.id}`, `artifact ${artifact.path} (${artifact.sha256}) is not there`)
        }
      }
    }
  }
}

function messageOf(error: unknown): string {
  if (isPaddockError(error)) return `${error.code}: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}
