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

/** In `segments.ids`, `logprobs` and `flags`: the column is in the frame of its call. */
export const inCallsFrame = Uint8Array.of(3)

/** True where a column says that it is in its call's frame. */
export function isInCallsFrame(column: Uint8Array): boolean {
  return column.byteLength === 1 && column[0] === inCallsFrame[0]
}

/** The bytes of {@link joinColumns} for these segments. */
function columnsBytes(shapes: readonly ColumnShape[]): number {
  let bytes = 0
  for (const { length, logprobs, flags } of shapes) bytes += length * (4 + (logprobs ? 4 : 0) + (flags ? 1 : 0))
  return bytes
}

/** Columns one behind the other; `parts` are ids, then logprobs and flags where there are any, by segment. */
export function joinColumns(shapes: readonly ColumnShape[], parts: readonly Uint8Array[]): Uint8Array {
  const sorted: Uint8Array[][] = [[], [], []]
  let next = 0
  for (const { logprobs, flags } of shapes) {
    for (const [kind, there] of [true, logprobs, flags].entries()) {
      const part = parts[next]
      if (!there || part === undefined) continue
      sorted[kind]?.push(part)
      next += 1
    }
  }
  const [ids = [], logprobs = [], flags = []] = sorted
  return Buffer.concat([planesOf(ids), planesOf(logprobs), ...flags])
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

function planesOf(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts)
  if (bytes === undefined) return new Uint8Array(0)
  return bytes.byteLength <= 4 * planesUpTo ? splitPlanes(bytes) : bytes
}

function numbersOf(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength <= 4 * planesUpTo ? unsplitPlanes(bytes) : bytes
}
