import type { LeaseKey } from '../../trajectory/index.ts'
import type { VerifyOrder } from './verify-order.ts'

/** A verification as a node gets it. */
export interface NodeVerification {
  readonly lease: LeaseKey
  readonly order: VerifyOrder
  /** Where the task's own folder or file stands below the files that go with it; empty: it is these themselves. */
  readonly at: string
}
