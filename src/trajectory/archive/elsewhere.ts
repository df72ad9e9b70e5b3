import { type Event, type Id, isPaddockError, type PaddockError } from '../../core/index.ts'
import type {
  ArchivedRecord,
  CatalogueReader,
  RecorderReader,
  SessionLog,
  SessionReadOptions,
  SessionRecord,
} from '../contract/index.ts'
import type { ArchivedSession } from '../recorder/index.ts'
import { openArchiveReader } from './open-archive.ts'
import { placeOf } from '../objects/index.ts'
import type { LogReads } from './reads.ts'

type Unpacking = Pick<LogReads, 'unpack' | 'unpackEvents'>

/**
 * Reads of a log, and of rollouts that another data directory on the same catalogue has recorded and archived where this one archives.
 * What it has not archived is said instead of that it has no sessions: `RECORDED_ELSEWHERE`.
 */
export function withElsewhere(
  log: RecorderReader & Unpacking,
  catalogue: Pick<CatalogueReader, 'rollout' | 'elsewhere' | 'archived'>,
  o: { readonly directory: string; readonly home: Id; readonly elsewhere: (runId: Id, where: string) => PaddockError },
): RecorderReader {
  const { unpack, unpackEvents, ...reads } = log

  async function bytesOf(record: ArchivedRecord): Promise<readonly [bytes: Uint8Array, archived: ArchivedSession]> {
    const { sessionId: id, object, count, head, folder } = record
    const place = placeOf(o.directory, 'archive')
    const archive = openArchiveReader(o.directory, place === null ? null : { ...place, folder })
    const bytes = await archive.get({ id, object })
    return [bytes, { id, object, count, head, deliveries: [], supersessions: [], events: null }]
  }

  async function read(record: ArchivedRecord, options?: SessionReadOptions): Promise<SessionLog> {
    return unpack(...(await bytesOf(record)), options)
  }

  /** Of a rollout that was recorded elsewhere, whole. Null: it is of this directory. */
  async function recordsOf(rolloutId: Id): Promise<readonly ArchivedRecord[] | null> {
    const rollout = await catalogue.rollout(rolloutId).catch(orNull)
    const where = rollout === null ? null : await catalogue.elsewhere(rollout.runId)
    if (rollout === null || where === null) return null
    const records = await catalogue.archived({ rolloutId })
    const wanted = Math.max(1, ...records.map(({ ofRollout }) => ofRollout))
    if (records.length < wanted || placeOf(o.directory, 'archive') === null) throw o.elsewhere(rollout.runId, where)
    return records
  }

  return {
    ...reads,
    sessions: async (filter) => {
      const found = await log.sessions(filter)
      if (found.length > 0 || filter?.rolloutId == null) return found
      const sessions: SessionRecord[] = []
      for (const record of (await recordsOf(filter.rolloutId)) ?? []) {
        sessions.push((await read(record, { bodies: [] })).session)
      }
      return sessions.toSorted((a, b) => a.createdAt - b.createdAt).slice(0, filter.limit)
    },
    session: async (id, options) => {
      try {
        return await log.session(id, options)
      } catch (error) {
        if (!isPaddockError(error) || error.code !== 'NOT_FOUND') throw error
        const [record] = (await catalogue.archived({ sessionId: id })).filter(({ home }) => home !== o.home)
        if (record === undefined) throw error
        return read(record, options)
      }
    },
    events: async ({ rolloutId }) => {
      const found = await log.events({ rolloutId })
      if (found.length > 0 || rolloutId === null) return found
      const events = new Map<Id, Event>()
      for (const record of (await recordsOf(rolloutId)) ?? []) {
        for (const event of await unpackEvents(...(await bytesOf(record)))) {
          if (event.rolloutId === rolloutId) events.set(event.id, event)
        }
      }
      return [...events.values()].toSorted((a, b) => a.at - b.at)
    },
  }
}

function orNull(error: unknown): null {
  if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
  throw error
}
