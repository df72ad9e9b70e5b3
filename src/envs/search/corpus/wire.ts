import { catalogue, type ErrorCode, isPaddockError, PaddockError } from '../../../core/index.ts'
import type { Bm25Parameters } from '../index/index.ts'
import type { CorpusSource, Document } from './document.ts'

/** A passage that a query found. */
export interface Hit extends Document {
  readonly score: number
}

/** What the thread is started with. */
export interface CorpusOrder {
  /** The corpora of this machine; the thread finds or makes its own below it. */
  readonly root: string
  readonly source: CorpusSource
}

/** A built corpus in a line. */
export interface CorpusFacts {
  readonly directory: string
  readonly digest: string
  readonly documents: number
}

/** Asks for the passages whose vectors are nearest to one. */
export interface NearestQuestion {
  /** File of 32-bit floats: one vector of length 1 per passage, in the order of the corpus. */
  readonly path: string
  readonly dimensions: number
  readonly vector: Float32Array
  readonly topk: number
}

export type CorpusRequest = { readonly id: number } & (
  | { readonly op: 'search'; readonly query: string; readonly topk: number; readonly parameters: Bm25Parameters }
  | { readonly op: 'get'; readonly document: string }
  /** Passages by place, in order. */
  | { readonly op: 'range'; readonly from: number; readonly count: number }
  | ({ readonly op: 'nearest' } & NearestQuestion)
)

export type CorpusReply =
  | { readonly ready: CorpusFacts }
  | { readonly id: number; readonly hits: readonly Hit[] }
  | { readonly id: number; readonly document: Document | null }
  | { readonly id: number; readonly documents: readonly Document[] }
  | { readonly id: number; readonly fault: CorpusFault }
  /** The corpus could not be opened. */
  | { readonly id: null; readonly fault: CorpusFault }

/** An error on its way between threads. */
export interface CorpusFault {
  readonly code: ErrorCode
  readonly message: string
  readonly fix: string
}

export function toFault(error: unknown): CorpusFault {
  if (isPaddockError(error)) return { code: error.code, message: error.message, fix: error.fix }
  return { code: 'STORE_FAILED', message: `The corpus failed: ${String(error)}`, fix: catalogue.STORE_FAILED.fix }
}

export function fromFault({ code, message, fix }: CorpusFault): PaddockError {
  return new PaddockError(code, message, { fix })
}
