import type { Id } from '../../core/index.ts'

/** What a node does; told to whoever looks at it. */
export type NodeNews =
  | {
      readonly type: 'claimed' | 'handed_in' | 'given_back' | 'refused' | 'lost' | 'verifying' | 'verified'
      readonly job: Id
      readonly run: Id | null
      readonly detail: string
    }
  | { readonly type: 'session'; readonly session: Id; readonly detail: string }
