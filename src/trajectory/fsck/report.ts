/** What a check found. `where` is a session, rollout, table, blob or file. */
export interface FsckReport {
  readonly problems: readonly { readonly where: string; readonly what: string }[]
  readonly counts: {
    readonly sessions: number
    readonly calls: number
    /** Calls that were running when the last owner died: opening the store settles them as interrupted. */
    readonly unfinished: number
    readonly segments: number
    readonly tokens: number
    readonly rollouts: number
    readonly blobs: number
  }
}

/** Tells a problem. */
export type Found = (where: string, what: string) => void

/** Counts while they are made. */
export type Counts = { -readonly [Name in keyof FsckReport['counts']]: number }
