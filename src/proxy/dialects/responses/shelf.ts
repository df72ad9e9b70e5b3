import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { CanonicalMessage } from '../translate/canonical.ts'

/** What a stored response adds to the conversation that it continues. */
export interface ShelvedResponse {
  readonly previous: string | null
  /** Input of the request without its instructions, which are not carried over. */
  readonly input: readonly CanonicalMessage[]
  readonly answer: CanonicalMessage
  readonly handle: ContinuedAnswer
}

/**
 * Responses that a later request of the session may continue by `previous_response_id`. Each holds only what it added;
 * a response that a client asked not to store is not here.
 */
export class ResponseShelf {
  private readonly byId = new Map<string, ShelvedResponse>()

  put(id: string, response: ShelvedResponse): void {
    this.byId.set(id, response)
  }

  /** The conversation up to and with a response, oldest first; null where the session holds no such response. */
  until(id: string): readonly ShelvedResponse[] | null {
    const found: ShelvedResponse[] = []
    for (let at: string | null = id; at !== null;) {
      const response = this.byId.get(at)
      if (response === undefined) return null
      found.unshift(response)
      at = response.previous
    }
    return found
  }
}
