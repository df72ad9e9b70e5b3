import { PaddockError } from '../../../core/index.ts'
import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { CanonicalMessage, CanonicalTool } from '../translate/canonical.ts'
import { type JsonObject, member, shape, textAt } from '../translate/read.ts'

/** What one request of a message thread added to it, and its answer. */
export interface ThreadTurn {
  /** Message id of the answer that it continues; null: it created the thread. */
  readonly previous: string | null
  /** With the system prompt, where it created the thread. */
  readonly messages: readonly CanonicalMessage[]
  /** Answers given back by an echo handle, by index of the messages above. */
  readonly handles: ReadonlyMap<number, ContinuedAnswer>
  /** Of the whole thread. */
  readonly tools: readonly CanonicalTool[]
  readonly answer: CanonicalMessage
  readonly handle: ContinuedAnswer
}

/**
 * Message threads of a session (Anthropic's beta `message-threads-2026-08-12`): a client sends its conversation once, and then only
 * what is new, with the id of the answer before. Each turn holds only what it added.
 */
export class MessageThreads {
  private readonly byId = new Map<string, ThreadTurn>()

  /** `id`: of the answer, as the client was told it. */
  put(id: string, turn: ThreadTurn): void {
    this.byId.set(id, turn)
  }

  get(id: string): ThreadTurn | null {
    return this.byId.get(id) ?? null
  }

  /** The thread up to and with an answer, oldest turn first; null where the session holds no such answer. */
  until(id: string): readonly ThreadTurn[] | null {
    return turnsUntil(id, (at) => this.get(at))
  }
}

/** Follows the turns of a thread back to its beginning. */
export function turnsUntil(id: string, turnOf: (id: string) => ThreadTurn | null): readonly ThreadTurn[] | null {
  const turns: ThreadTurn[] = []
  for (let at: string | null = id; at !== null;) {
    const turn = turnOf(at)
    if (turn === null) return null
    turns.push(turn)
    at = turn.previous
  }
  return turns.toReversed()
}

/** The message id by which a client knows the answer of a call. */
export function messageId(callId: string): string {
  return `msg_${callId.replaceAll('-', '')}`
}

/** The `thread` of a request: null without one; its `previous` is null where it creates one. Throws `BODY_INVALID_SHAPE`. */
export function readThread(body: JsonObject): { readonly previous: string | null } | null {
  const thread = member(body, 'thread')
  if (thread === undefined || thread.kind === 'null') return null
  const [type, previous] = [textAt(thread, 'type'), textAt(thread, 'previous_message_id')]
  if (type === 'create') return { previous: null }
  if (type === 'continue' && previous !== undefined) return { previous }
  throw shape('thread', 'create, or continue with `previous_message_id`')
}

/** Throws `THREAD_UNKNOWN`, at which a client sends its whole conversation. */
export function threadUntil(previous: string, threads: Pick<MessageThreads, 'until'>): readonly ThreadTurn[] {
  const turns = threads.until(previous)
  if (turns !== null) return turns
  throw new PaddockError('THREAD_UNKNOWN', `No message thread of this session goes on from '${previous}'.`, {
    data: { field: 'thread.previous_message_id' },
  })
}
