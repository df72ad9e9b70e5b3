/** Work that is leased, with fencing tokens. */
import type { Id } from '../../core/index.ts'

/** A claimed item. `token` fences: a holder whose lease expired can no longer acknowledge. */
export interface Lease {
  readonly itemId: Id
  readonly topic: string
  readonly payload: unknown
  readonly token: number
  readonly attempt: number
  readonly expiresAt: number
}

/** Work waiting to be claimed. Times are the database's own. */
export interface Queue {
  /** Idempotent by id. */
  enqueue(
    topic: string,
    items: readonly { readonly id: Id; readonly payload: unknown; readonly priority?: number }[],
  ): Promise<void>
  claim(topic: string, owner: string, options: { limit: number; ttlMs: number }): Promise<readonly Lease[]>
  /** False when the lease is no longer held. */
  extend(lease: Lease, ttlMs: number): Promise<boolean>
  ack(lease: Lease): Promise<boolean>
  /** Gives the item back, optionally after a delay. */
  requeue(lease: Lease, delayMs?: number): Promise<boolean>
  depth(topic: string): Promise<{ readonly waiting: number; readonly leased: number; readonly done: number }>
  close(): Promise<void>
}
