/** A data directory with all of it. */
import type { Blobs } from './blobs.ts'
import type { Catalogue, CatalogueReader } from './catalogue.ts'
import type { Queue } from './queue.ts'
import type { Recorder, RecorderReader } from './recorder.ts'

/** A data directory opened by its owner. */
export interface Store extends AsyncDisposable {
  readonly directory: string
  readonly recorder: Recorder
  readonly catalogue: Catalogue
  readonly queue: Queue
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
  readonly blobs: Pick<Blobs, 'get' | 'has' | 'list'>
  close(): Promise<void>
}
