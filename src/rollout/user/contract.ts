import type { Id } from '../../core/index.ts'
import type { Said } from '../../envs/index.ts'

/** Where a user's model is asked, and what the task said first. */
export interface UserSession {
  readonly baseUrl: string
  readonly apiKey: string
  readonly model: string
  readonly opening: string
}

/** What a user says next. */
export interface Played {
  /** Null: it says nothing more. */
  readonly text: string | null
  readonly over: 'left' | 'record' | null
  /** Its own call. */
  readonly callId: Id | null
  readonly cut?: true
}

/** Says what the user says. Rejects with the signal's reason, or with `USER_FAILED`. */
export interface Player {
  reply(talk: readonly Said[], signal: AbortSignal): Promise<Played>
}
