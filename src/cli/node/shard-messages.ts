/** What the processes of a node say to each other. Shards are numbered from 0 here, and from 1 wherever a person reads of them. */
import { z } from 'zod'

/** To a shard. A connection itself comes beside its message. */
export const toShard = z.discriminatedUnion('type', [
  /** The first: where all shards are reached. */
  z.strictObject({ type: z.literal('begin'), origin: z.string() }),
  /** Where each one is reached by the others; null: it is not there. */
  z.strictObject({ type: z.literal('shards'), origins: z.array(z.string().nullable()) }),
  /** A connection, and what was read of it, in base64. */
  z.strictObject({ type: z.literal('connection'), read: z.string() }),
])
export type ToShard = z.output<typeof toShard>

/** From a shard: where the others reach it from now on. */
export const fromShard = z.strictObject({ type: z.literal('open'), origin: z.string().nullable() })
export type FromShard = z.output<typeof fromShard>
