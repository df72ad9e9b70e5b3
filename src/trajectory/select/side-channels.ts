import type { Event } from '../../core/index.ts'
import type { SessionLog } from '../contract/index.ts'
import type { RowSideChannel } from '../rows-contract.ts'

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

function isSideChannel(event: Event): event is Extract<Event, { kind: 'side_channel' }> {
  return event.kind === 'side_channel'
}
