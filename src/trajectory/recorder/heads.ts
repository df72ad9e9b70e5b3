/**
 * Heads of the entries that every call brings, as bytes: where an id is a UUID, as ours are, it stands there as in a column.
 * Numbers at fixed places, little-endian. An entry with another id keeps a JSON head; so have those of before.
 */
import { PaddockError } from '../../core/index.ts'
import type { Delivery } from '../contract/index.ts'
import { writeDigest, writeUuid } from '../sqlite/index.ts'
import type { BeginCall, EndCall, LogHead, SettleDelivery } from './log-head.ts'

/** The first byte. */
const ops = { beginCall: 1, endCall: 2, settleDelivery: 3 } as const
/** By place; only ever appended to. */
const deliveries: readonly Delivery[] = ['sent', 'echoed', 'unknown']

/** Where things of an intent stand; all others stand as here up to their own. */
const at = {
  id: 1,
  session: 17,
  digest: 33,
  /** Says nothing at depth 0, where there is none. */
  base: 65,
  seq: 81,
  startedAt: 89,
  depth: 97,
  facts: 101,
  body: 109,
  end: 117,
} as const
const ended = { at: 17, end: 25 } as const
const settled = { delivery: 17, end: 18 } as const

/** The head of an intent. */
export function beginCallHead(head: BeginCall): Uint8Array | BeginCall {
  const bytes = Buffer.allocUnsafe(at.end)
  bytes[0] = ops.beginCall
  const fits =
    writeUuid(head.id, bytes, at.id) &&
    writeUuid(head.session, bytes, at.session) &&
    writeDigest(head.requestDigest, bytes, at.digest) &&
    (head.base === null ? head.depth === 0 : writeUuid(head.base, bytes, at.base))
  // What no id fills is nobody's memory, and the same intent is the same bytes.
  if (head.base === null) bytes.fill(0, at.base, at.seq)
  if (!fits) return head
  bytes.writeDoubleLE(head.seq, at.seq)
  bytes.writeDoubleLE(head.startedAt, at.startedAt)
  bytes.writeUInt32LE(head.depth, at.depth)
  bytes.writeUInt32LE(head.facts.prefix, at.facts)
  bytes.writeUInt32LE(head.facts.suffix, at.facts + 4)
  bytes.writeUInt32LE(head.body.prefix, at.body)
  bytes.writeUInt32LE(head.body.suffix, at.body + 4)
  return bytes
}

/** The head of a call's end. */
export function endCallHead(head: EndCall): Uint8Array | EndCall {
  const bytes = Buffer.allocUnsafe(ended.end)
  bytes[0] = ops.endCall
  if (!writeUuid(head.id, bytes, at.id)) return head
  bytes.writeDoubleLE(head.endedAt, ended.at)
  return bytes
}

/** The head of a delivery. */
export function settleDeliveryHead(head: SettleDelivery): Uint8Array | SettleDelivery {
  const bytes = Buffer.allocUnsafe(settled.end)
  bytes[0] = ops.settleDelivery
  if (!writeUuid(head.id, bytes, at.id)) return head
  bytes[settled.delivery] = deliveries.indexOf(head.delivery)
  return bytes
}

/** What a head of bytes says; its ids are views of it. Throws `STORE_CORRUPT`. */
export function readHead(bytes: Buffer): LogHead {
  const id = bytes.subarray(at.id, at.session)
  switch (bytes[0]) {
    case ops.beginCall: {
      const depth = bytes.readUInt32LE(at.depth)
      return {
        op: 'beginCall',
        id,
        session: bytes.subarray(at.session, at.digest),
        seq: bytes.readDoubleLE(at.seq),
        startedAt: bytes.readDoubleLE(at.startedAt),
        requestDigest: bytes.subarray(at.digest, at.base),
        base: depth === 0 ? null : bytes.subarray(at.base, at.seq),
        depth,
        facts: { prefix: bytes.readUInt32LE(at.facts), suffix: bytes.readUInt32LE(at.facts + 4) },
        body: { prefix: bytes.readUInt32LE(at.body), suffix: bytes.readUInt32LE(at.body + 4) },
      }
    }
    case ops.endCall:
      return { op: 'endCall', id, endedAt: bytes.readDoubleLE(ended.at) }
    case ops.settleDelivery:
      return { op: 'settleDelivery', id, delivery: deliveries[bytes[settled.delivery] ?? -1] ?? 'unknown' }
    default:
      throw new PaddockError('STORE_CORRUPT', `the journal has an entry of kind ${bytes[0] ?? 'none'}, unknown here`, {
        fix: 'Open the store with the newer Paddock that wrote it.',
      })
  }
}
