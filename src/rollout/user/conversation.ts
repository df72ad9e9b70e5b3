import type { EventBody } from '../../core/index.ts'
import type { Said, TaskUser } from '../../envs/index.ts'
import type { AgentClock } from '../agent-clock.ts'
import type { Played, Player } from './contract.ts'

/** Characters of each side that an event holds; the calls hold all of it. */
const eventTextLimit = 16_384

interface Parts {
  readonly user: TaskUser
  readonly player: Player
  readonly emit: (event: EventBody) => void
}

/** The talk of one attempt's agent with the user of its task. Everything that is said is an event of the rollout. */
export class UserConversation {
  readonly #parts: Parts
  readonly #talk: Said[] = []
  #turns = 0
  #over = false
  #clock: Pick<AgentClock, 'hold'> | null = null
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The agent's clock stands still while the user is asked. */
  open(clock: Pick<AgentClock, 'hold'>): void {
    this.#clock = clock
  }

  get over(): boolean {
    return this.#over
  }

  /** What was said so far. */
  get talk(): readonly Said[] {
    return this.#talk
  }

  /**
   * What the user says to this; null: the conversation is over. One thing is said after the other. Rejects with the signal's reason, or
   * with `USER_FAILED`.
   */
  hear(said: string | null, signal: AbortSignal): Promise<string | null> {
    const reply = this.#last.then(() => this.#hear(said, signal))
    this.#last = reply.catch(() => undefined)
    return reply
  }

  async #hear(said: string | null, signal: AbortSignal): Promise<string | null> {
    signal.throwIfAborted()
    if (this.#over) return null
    const text = said ?? ''
    if (text.trim() === '') return this.#tell(text, { text: null, over: null, callId: null }, 'silent')
    this.#talk.push({ by: 'agent', text })
    const { user, player } = this.#parts
    if (this.#turns >= user.maxTurns) return this.#tell(text, { text: null, over: null, callId: null }, 'max_turns')
    using _held = this.#clock?.hold() ?? null
    const played = await player.reply(this.#talk, signal)
    return this.#tell(text, played, played.over)
  }

  #tell(
    said: string,
    { text: reply, callId, cut }: Played,
    over: Extract<EventBody, { kind: 'user_turn' }>['over'],
  ): string | null {
    this.#turns += 1
    this.#over = over !== null
    if (reply !== null) this.#talk.push({ by: 'user', text: reply })
    this.#parts.emit({
      kind: 'user_turn',
      turn: this.#turns,
      said: said.slice(0, eventTextLimit),
      reply: reply === null ? null : reply.slice(0, eventTextLimit),
      over,
      by: this.#parts.user.by,
      callId,
      ...(cut === undefined ? {} : { cut }),
    })
    return reply
  }
}

/** A user whose replies are given beforehand: the same in every attempt. */
export function recordedUser(replies: readonly string[]): Player {
  let next = 0
  return {
    reply: async () => {
      const text = replies[next] ?? null
      next += 1
      return { text, over: text === null ? 'record' : null, callId: null }
    },
  }
}
