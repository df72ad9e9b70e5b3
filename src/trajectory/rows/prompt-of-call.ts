import type { Id } from '../../core/index.ts'
import type { Segment, SessionLog } from '../contract/index.ts'
import { Forest } from './forest.ts'

/** The ids that an answer of a call stands behind, and the ids of that answer as they were sampled, a tail behind a stop cut included. */
export interface CallPath {
  readonly prompt: Int32Array
  /** By choice. */
  readonly answers: ReadonlyMap<number, Int32Array>
}

/** What a recorded call was conditioned on; null where the engine told no ids of its prompt. Throws `STORE_CORRUPT`. */
export function promptOfCall(log: SessionLog, callId: Id): CallPath | null {
  const forest = new Forest(log)
  const call = log.calls.find(({ intent }) => intent.id === callId)
  const leaf = log.segments.find(({ id }) => id === call?.commit?.promptLeaf)
  if (leaf === undefined) return null
  const answers = new Map<number, Int32Array>()
  const own = log.segments.filter((one) => one.callId === callId && one.choice !== null)
  for (const { index, segmentId } of call?.commit?.choices ?? []) {
    const shown = own.find(({ id }) => id === segmentId)
    if (shown === undefined) continue
    const tails = own.filter(({ stopCut, parent }) => stopCut && parent?.segmentId === shown.id)
    answers.set(index, joined([shown, ...tails].map(({ tokens }) => tokens)))
  }
  return { prompt: joined(forest.pathTo(leaf).map(stepTokens)), answers }
}

function stepTokens({ segment, length }: { readonly segment: Segment; readonly length: number }): Int32Array {
  return segment.tokens.subarray(0, length)
}

function joined(pieces: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
