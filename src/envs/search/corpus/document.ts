/** One passage of a corpus. */
export interface Document {
  /** Unique within the corpus. */
  readonly id: string
  readonly title: string
  readonly text: string
}

/** Where the passages of a corpus come from. */
export type CorpusSource =
  /** Generated from a seed: see `generate/`. The same version and seed give the same bytes on every machine. */
  | { readonly kind: 'generated'; readonly version: number; readonly seed: number; readonly passages: number }
  /** A file with one JSON object per line: `{id, contents}` of Search-R1 or `{_id, title, text}` of BEIR. */
  | { readonly kind: 'jsonl'; readonly path: string }
  /** The passages that stand with the questions of a data set, each once. */
  | { readonly kind: 'contexts'; readonly format: ContextFormat; readonly path: string }

/** `hotpotqa`: also 2WikiMultihopQA, which has the same shape. */
export type ContextFormat = 'hotpotqa' | 'musique'
