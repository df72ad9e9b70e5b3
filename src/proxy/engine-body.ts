import { editObject } from '../core/index.ts'
import type { ChatRequest } from './dialects/chat/request.ts'

/** What is changed on the way to the engine, JSON texts by member name. */
export interface BodyChange {
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
  /** Ask without `stream`; the stream is synthesised for the client. */
  readonly buffered: boolean
}

/** The body for the engine: the client's bytes with the named members set and removed, nothing else touched. */
export function engineBody(request: ChatRequest, change: BodyChange): Buffer {
  if (!request.streamed) return editObject(request.bytes, change, request.scanned)
  const set: Record<string, string> = { ...change.set }
  const remove = [...change.remove]
  if (change.buffered) {
    set['stream'] = 'false'
    remove.push('stream_options')
  } else {
    const options = request.scanned.members.findLast((member) => member.key === 'stream_options')
    const given = options === undefined ? null : request.bytes.subarray(options.valueStart, options.valueEnd)
    set['stream_options'] =
      given !== null && given[0] === 0x7b
        ? editObject(given, { set: { include_usage: 'true' } }).toString()
        : '{"include_usage":true}'
  }
  return editObject(request.bytes, { set, remove }, request.scanned)
}
