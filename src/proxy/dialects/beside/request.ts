import type { IncomingHttpHeaders } from 'node:http'
import { askedSampling } from '../../session/sampling.ts'
import { readLineage } from '../chat/lineage.ts'
import { type ChatRequest, readMembers, requestDigest } from '../chat/request.ts'
import { Turns } from '../chat/turns.ts'

/**
 * A request without messages: what of it the proxy looks at. The engine is the judge of the rest. Throws
 * `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`.
 */
export function readBesideRequest(
  bytes: Buffer,
  headers: IncomingHttpHeaders,
  { samples }: { readonly samples: boolean },
): ChatRequest {
  const { text, body, scanned, model, streamed, wantsUsage } = readMembers(bytes)
  return {
    bytes,
    body,
    scanned,
    streamed: samples && streamed,
    wantsUsage: samples && wantsUsage,
    wantsLogprobs: false,
    topLogprobs: null,
    hasTools: false,
    model,
    messages: [],
    turns: new Turns([]),
    asked: askedSampling(samples ? body : {}),
    lineage: readLineage(headers, body, null),
    digest: requestDigest(bytes, text.includes('"cache_control"'), scanned.members),
  }
}
