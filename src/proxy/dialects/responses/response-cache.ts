import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { CanonicalMessage } from '../translate/canonical.ts'

/** The answer of a stored response. */
export interface StoredAnswer {
  readonly answer: CanonicalMessage
  /** Null: what the session stored is not at hand, and what names it is left out. */
  readonly handle: ContinuedAnswer | null
}

/** What a stored response adds to the conversation that it continues. */
export interface CachedResponse {
  readonly previous: string | null
  /** Input of the request without its instructions, which are not carried over. */
  readonly input: readonly CanonicalMessage[]
  /** The same as the client wrote it, JSON text. */
  readonly inputText: string
  readonly answer: CanonicalMessage
  readonly handle: ContinuedAnswer
  /** The response object as the client got it. */
  readonly response: LooseObject
}

/**
 * Responses that a later request of the session may continue by `previous_response_id` or read again. Each holds only
 * what it added; a response that a client asked not to store is not here. A deleted one is gone for clients, but what
 * was continued from it before stays whole.
 */
export class ResponseCache {
  private readonly byId = new Map<string, CachedResponse>()
  private readonly deleted = new Set<string>()

  put(id: string, response: CachedResponse): void {
    this.byId.set(id, response)
  }

  get(id: string): CachedResponse | null {
    return this.deleted.has(id) ? null : (this.byId.get(id) ?? null)
  }

  /** The answer whose items a request may name by their ids; null where the session holds no such response. */
  answered(id: string): StoredAnswer | null {
    return this.get(id)
  }

  /** False where the session holds no such response. */
  delete(id: string): boolean {
    if (this.get(id) === null) return false
    this.deleted.add(id)
    return true
  }

  /** The conversation up to and with a response, oldest first; null where the session holds no such response. */
  until(id: string): readonly CachedResponse[] | null {
    if (this.deleted.has(id)) return null
    const found: CachedResponse[] = []
    for (let at: string | null = id; at !== null;) {
      const response = this.byId.get(at)
      if (response === undefined) return null
      found.unshift(response)
      at = response.previous
    }
    return found
  }
}
