import type { Event } from '../../core/index.ts'
import type { SessionLog } from '../contract/index.ts'
import type { Row, RowSideChannel } from '../rows-contract.ts'

/** What a session's engine gave beside ids and logprobs, with the places that an export has for it. */
export function sideChannelsOf(log: SessionLog): readonly RowSideChannel[] {
  return log.events.filter(isSideChannel).map(({ callId, choice, what, encoding, sha256, sizeBytes }) => ({
    callId,
    choice,
    what,
    encoding,
    path: `side_channels/${sha256}`,
    sha256,
    sizeBytes,
  }))
}

/** Entropies as their blob has them, float32 little-endian. */
export function entropiesOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer)
}

/**
 * Entropies of a row's sampled tokens, shape [T], NaN elsewhere and where they are not known; undefined where none is. `known`: by
 * `<call id>/<choice>`.
 */
export function rowEntropies(
  { tokens, segments }: Pick<Row, 'tokens' | 'segments'>,
  known: ReadonlyMap<string, Float32Array>,
): Float32Array | undefined {
  if (known.size === 0) return undefined
  const values = new Float32Array(tokens.length).fill(Number.NaN)
  let isKnown = false
  for (const { callId, choice, start, end } of segments) {
    const of = choice === null ? undefined : known.get(`${callId}/${choice}`)
    if (of === undefined || of.length < end - start) continue
    values.set(of.subarray(0, end - start), start)
    isKnown = true
  }
  return isKnown ? values : undefined
}

function isSideChannel(event: Event): event is Extract<Event, { kind: 'side_channel' }> {
  return event.kind === 'side_channel'
}
