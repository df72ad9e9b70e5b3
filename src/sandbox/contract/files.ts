export interface PutFile {
  /** Relative; no `..`. One that ends in `/` is a directory, left as it is where there is one; its data is not looked at. */
  readonly path: string
  readonly data: Uint8Array | string
  /** Default 0o644. */
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
}

/** A directory of the host, copied with its modes; links are kept only if they stay inside. */
export interface FileTree {
  readonly fromDirectory: string
  readonly uid?: number
  readonly gid?: number
}

export interface ArchiveLimits {
  /** Default 64 MiB for all files together. */
  readonly maxBytes?: number
  /** Default 10,000. */
  readonly maxEntries?: number
}

/** What was taken out of a box. Paths are relative to the asked path; for a single file the path is its name. */
export interface Artifact {
  readonly found: boolean
  readonly entries: readonly ArchiveEntry[]
  readonly refused: readonly RefusedEntry[]
  /** True when what was refused went so far over the limits that the rest was not looked at. */
  readonly cutShort: boolean
  readonly totalBytes: number
}

export interface RefusedEntry {
  readonly path: string
  readonly reason: RefusedReason
  /** Where a refused link pointed, as it was written. */
  readonly target?: string
}

export type ArchiveEntry =
  | { readonly type: 'file'; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | { readonly type: 'directory'; readonly path: string; readonly mode: number }
  /** Relative link whose target stays inside the artifact. */
  | { readonly type: 'symlink'; readonly path: string; readonly target: string }

export type RefusedReason =
  | 'absolute_path'
  | 'parent_path'
  | 'link_out'
  | 'hard_link'
  | 'device'
  | 'through_link'
  | 'duplicate'
  | 'too_large'
  | 'too_many'
  /** The whole place: the daemon cannot pack what stands there. */
  | 'unreadable'
