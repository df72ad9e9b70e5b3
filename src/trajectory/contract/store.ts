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
  /** What recovery found at opening: calls that were in flight. */
  readonly recovered: { readonly interruptedCalls: number }
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
