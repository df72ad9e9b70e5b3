import type { ServerResponse } from 'node:http'
import { type Id, PaddockError } from '../core/index.ts'
import { inputItems } from './dialects/responses/input-items.ts'
import type { LiveSession } from './session/live-session.ts'

/** A stored response that a client asks for, of OpenAI's Responses API. */
export interface StoredRoute {
  readonly verb: 'read' | 'delete' | 'items'
  /** As the client was told it. */
  readonly responseId: string
  /** Of the URL, not decoded. */
  readonly query: string
}

/**
 * `GET` and `DELETE /v1/responses/{id}`, `GET /v1/responses/{id}/input_items` (API reference "Get a model response", "Delete a
 * model response", "List input items"). A response is
 * there once its call is committed, and gone once that is stored (`deleted`), so that nobody can act on what a crash would
 * forget (invariant I5). Throws `RESPONSE_UNKNOWN`, `BODY_INVALID_SHAPE`
 * for a page that cannot be told.
 */
export async function serveStored(
  session: LiveSession,
  { verb, responseId, query }: StoredRoute,
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
  const told =
    verb === 'read'
      ? found.response
      : verb === 'items'
        ? inputItems(session.responses.until(responseId) ?? [], new URLSearchParams(query))
        : { id: responseId, object: 'response', deleted: true }
  const body = Buffer.from(JSON.stringify(told))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}
