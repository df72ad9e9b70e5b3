import type { ServerResponse } from 'node:http'
import { type Id, PaddockError } from '../core/index.ts'
import type { LiveSession } from './session/live-session.ts'

/** A stored response that a client asks for, of OpenAI's Responses API. */
export interface StoredRoute {
  readonly verb: 'read' | 'delete'
  /** As the client was told it. */
  readonly responseId: string
}

/**
 * `GET` and `DELETE /v1/responses/{id}` (API reference "Get a model response", "Delete a model response"). A response is
 * there once its call is committed, and gone once that is stored (`deleted`), so that nobody can act on what a crash would
 * forget (invariant I5). Throws `RESPONSE_UNKNOWN`.
 */
export async function serveStored(
  session: LiveSession,
  { verb, responseId }: StoredRoute,
  response: ServerResponse,
  deleted: (callId: Id) => Promise<void>,
): Promise<void> {
  const found = session.responses.get(responseId)
  const running = [...session.running].some((call) => call.id === found?.handle.callId)
  if (found === null || running) {
    throw new PaddockError('RESPONSE_UNKNOWN', `Response with id '${responseId}' not found.`, { data: { responseId } })
  }
  if (verb === 'delete') {
    await deleted(found.handle.callId)
    session.responses.delete(responseId)
  }
  const told = verb === 'read' ? found.response : { id: responseId, object: 'response', deleted: true }
  const body = Buffer.from(JSON.stringify(told))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}
