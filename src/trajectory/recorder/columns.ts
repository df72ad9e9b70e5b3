/**
 * The token columns of a call's segments in one frame: a frame costs more than what is in it. All ids, then all
 * logprobs, then all flags, each in the order of the segments; ids and logprobs as byte planes while they are few.
 */
import { PaddockError } from '../../core/index.ts'
import { planesUpTo, splitPlanes, unsplitPlanes } from './codec.ts'

/** What of a segment its columns' bytes depend on. */
export interface ColumnShape {
  readonly length: number
  readonly logprobs: boolean
  readonly flags: boolean
}

/** The columns of a segment, freshly allocated. */
export interface SegmentColumns {
  readonly ids: Uint8Array<ArrayBuffer>
  readonly logprobs: Uint8Array<ArrayBuffer> | null
  readonly flags: Uint8Array<ArrayBuffer> | null
}

/** The bytes of {@link joinColumns} for these segments. */
function columnsBytes(shapes: readonly ColumnShape[]): number {
  let bytes = 0
  for (const { length, logprobs, flags } of shapes) bytes += length * (4 + (logprobs ? 4 : 0) + (flags ? 1 : 0))
  return bytes
}

/** Columns one behind the other; `parts` are ids, then logprobs and flags where there are any, by segment. */
export function joinColumns(shapes: readonly ColumnShape[], parts: readonly Uint8Array[]): Uint8Array {
  const ids: Uint8Array[] = []
  const logprobs: Uint8Array[] = []
  const flags: Uint8Array[] = []
  let next = 0
  const take = (into: Uint8Array[]): void => {
    const part = parts[next]
    next += 1
    if (part !== undefined) into.push(part)
  }
  for (const shape of shapes) {
    take(ids)
    if (shape.logprobs) take(logprobs)
    if (shape.flags) take(flags)
  }
  const out = new Uint8Array(columnsBytes(shapes))
  const logprobsAt = putNumbers(out, 0, ids)
  let at = putNumbers(out, logprobsAt, logprobs)
  for (const part of flags) {
    out.set(part, at)
    at += part.byteLength
  }
  return out
}

/** The columns again, by segment. Throws `STORE_CORRUPT` where the bytes are not those of these segments. */
export function cutColumns(shapes: readonly ColumnShape[], bytes: Uint8Array): SegmentColumns[] {
  if (bytes.byteLength !== columnsBytes(shapes)) {
    throw new PaddockError('STORE_CORRUPT', 'the token columns of a call do not have the lengths of its segments')
  }
  const idBytes = 4 * shapes.reduce((sum, { length }) => sum + length, 0)
  const logprobBytes = 4 * shapes.reduce((sum, { length, logprobs }) => sum + (logprobs ? length : 0), 0)
  const ids = numbersOf(bytes.subarray(0, idBytes))
  const logprobs = numbersOf(bytes.subarray(idBytes, idBytes + logprobBytes))
  let [atId, atLogprob, atFlag] = [0, 0, idBytes + logprobBytes]
  return shapes.map((shape) => {
    const columns = {
      ids: ids.slice(atId, atId + 4 * shape.length),
      logprobs: shape.logprobs ? logprobs.slice(atLogprob, atLogprob + 4 * shape.length) : null,
      flags: shape.flags ? bytes.slice(atFlag, atFlag + shape.length) : null,
    }
    atId += 4 * shape.length
    if (shape.logprobs) atLogprob += 4 * shape.length
    if (shape.flags) atFlag += shape.length
    return columns
  })
}

/** Numbers of all parts together, as byte planes while they are few. Returns the place behind them. */
function putNumbers(out: Uint8Array, at: number, parts: readonly Uint8Array[]): number {
  let bytes = 0
  for (const part of parts) bytes += part.byteLength
  const end = at + bytes
  if (bytes <= 4 * planesUpTo) {
    const count = bytes / 4
    for (let place = 0, done = at; place < parts.length; place += 1) {
      const part = parts[place]
      if (part !== undefined) done = splitPlanes(part, out, done, count)
    }
    return end
  }
  let to = at
  for (const part of parts) {
    out.set(part, to)
    to += part.byteLength
  }
  return end
}

function numbersOf(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength <= 4 * planesUpTo ? unsplitPlanes(bytes) : bytes
}
