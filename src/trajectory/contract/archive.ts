/** Finished sessions whose records are objects of an object store or a shared directory. */
import type { Digest, Id } from '../../core/index.ts'

/** Where the records of a finished session are. Appended: the last one of a session is in force. */
export interface ArchivedRecord {
  readonly sessionId: Id
  /** Null: it belongs to none. */
  readonly rolloutId: Id | null
  /** The data directory that recorded it, by the identity of its log. */
  readonly home: Id
  /** The folder of that directory in the store. */
  readonly folder: string
  /** SHA-256 of the object's bytes, and its name. */
  readonly object: Digest
  /** Of the records in it: how many, and what their digests come to. */
  readonly count: number
  readonly head: number
  /** Sessions that its rollout had by then: those of whoever has fewer are not all archived. */
  readonly ofRollout: number
}

/** How sessions stand that go to an archive. */
export interface ArchiveState {
  /** Finished sessions whose records are in the data directory and not in the archive yet. */
  readonly waiting: number
  /** Of these, those that cannot be read: `paddock fsck` names them. */
  readonly damaged: number
  /** Tries that failed since the start. */
  readonly failures: number
  /** Why the archive is not to be had; null: it is. */
  readonly away: string | null
}
