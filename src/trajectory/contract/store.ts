/** A data directory with all of it. */
import type { Id } from '../../core/index.ts'
import type { Blobs } from './blobs.ts'
import type { Catalogue, CatalogueReader } from './catalogue.ts'
import type { Queue } from './queue.ts'
import type { TrainerBook, TrainerReader } from './trainer.ts'
import type { Recorder, RecorderReader } from './recorder.ts'

/** What was written of a run: a round opened or settled, a rollout started, ended or got a verdict. */
export type StoreChange =
  | { readonly kind: 'round'; readonly runId: Id }
  | { readonly kind: 'rollout'; readonly rolloutId: Id }
  /** It was closed. */
  | { readonly kind: 'run'; readonly runId: Id }

/** Tells of writes of this process once they are durable. A hint to look, not a record. */
export interface StoreChanges {
  on(listener: (change: StoreChange) => void): Disposable
}

/** A data directory opened by its owner. */
export interface Store extends AsyncDisposable {
  readonly directory: string
  readonly recorder: Recorder
  readonly catalogue: Catalogue
  readonly queue: Queue
  readonly trainer: TrainerBook
  readonly changes: StoreChanges
  readonly blobs: Blobs
  /** What recovery found at opening. */
  readonly recovered: {
    /** Calls that were in flight. */
    readonly interruptedCalls: number
    /** Sessions with fewer records than the catalogue remembers, and unreadable places of the journal: see `paddock fsck`. */
    readonly damaged: number
  }
  close(): Promise<void>
}

/** A data directory opened by a reader, at any time, beside its owner. */
export interface StoreReader extends AsyncDisposable {
  readonly directory: string
  readonly recorder: RecorderReader
  readonly catalogue: CatalogueReader
  readonly trainer: TrainerReader
  readonly blobs: Pick<Blobs, 'get' | 'has' | 'list'>
  close(): Promise<void>
}
