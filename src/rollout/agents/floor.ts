import type { EventBody } from '../../core/index.ts'
import type { Said, TaskAgents } from '../../envs/index.ts'

/** Characters of a turn that an event holds; the calls hold all of it. */
const eventTextLimit = 16_384

/** How many agents take turns, and until when. */
export type TurnRules = Pick<Extract<TaskAgents, { by: 'turns' }>, 'agents' | 'maxTurns' | 'doneWord'>

/** What is said where agents take turns, and whose turn it is. Everything that is said is an event of the rollout. */
export class Floor {
  readonly #rules: TurnRules
  readonly #emit: (event: EventBody) => void
  readonly #talk: (Said & { readonly agent: string })[] = []
  /** How much of the talk each has heard. */
  readonly #heard = new Map<string, number>()
  readonly #waiting = new Map<string, (told: string | null) => void>()
  #turn: string | null
  #turns = 0

  constructor(rules: TurnRules, emit: (event: EventBody) => void) {
    this.#rules = rules
    this.#emit = emit
    this.#turn = rules.agents[0]?.name ?? null
  }

  /** What was said so far. */
  get talk(): readonly Said[] {
    return this.#talk
  }

  /** What was said since an agent's last turn, once it is its turn; empty where nothing was. Null: the work is over. */
  turnOf(agent: string): Promise<string | null> {
    if (this.#turn === null) return Promise.resolve(null)
    if (this.#turn === agent) return Promise.resolve(this.#tellTo(agent))
    return new Promise((resolve) => void this.#waiting.set(agent, resolve))
  }

  /** The turn of an agent ended with these words: the next one's begins. Resolves as {@link turnOf} does. */
  pass(agent: string, said: string | null): Promise<string | null> {
    if (this.#turn !== agent) return this.turnOf(agent)
    const text = said ?? ''
    this.#talk.push({ by: 'agent', agent, text })
    this.#heard.set(agent, this.#talk.length)
    this.#turns += 1
    const over = this.#whyOver(text)
    this.#emit({ kind: 'agent_turn', turn: this.#turns, agent, said: text.slice(0, eventTextLimit), over })
    if (over !== null) this.end()
    else this.#giveTo(this.#after(agent))
    return this.turnOf(agent)
  }

  /** Nobody has a turn any more. */
  end(): void {
    this.#turn = null
    for (const tell of this.#waiting.values()) tell(null)
    this.#waiting.clear()
  }

  #whyOver(text: string): Extract<EventBody, { kind: 'agent_turn' }>['over'] {
    const { maxTurns, doneWord } = this.#rules
    if (text.trim() === '') return 'silent'
    if (doneWord !== undefined && text.includes(doneWord)) return 'done'
    return this.#turns >= maxTurns ? 'max_turns' : null
  }

  #after(agent: string): string {
    const names = this.#rules.agents.map(({ name }) => name)
    return names[(names.indexOf(agent) + 1) % names.length] ?? agent
  }

  #giveTo(agent: string): void {
    this.#turn = agent
    const tell = this.#waiting.get(agent)
    this.#waiting.delete(agent)
    tell?.(this.#tellTo(agent))
  }

  #tellTo(agent: string): string {
    const news = this.#talk.slice(this.#heard.get(agent) ?? 0)
    this.#heard.set(agent, this.#talk.length)
    // Of two it is clear who spoke.
    const [only] = news
    if (only !== undefined && news.length === 1 && this.#rules.agents.length === 2) return only.text
    return news.map((one) => `${one.agent}: ${one.text}`).join('\n\n')
  }
}
