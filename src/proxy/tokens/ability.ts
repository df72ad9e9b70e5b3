import type { TokenAbility, TokenEngine } from '../engines/token-engine.ts'
import { whyVoid } from './void-render.ts'

/** What is known of an engine's token routes; asked once, and again after a failure to reach it. */
export class KnownAbility {
  private readonly engine: TokenEngine
  private readonly voided: (why: string) => void
  private known: { readonly routes: TokenAbility; readonly void: string | null } | 'missing' | 'unknown' = 'unknown'
  private asking: Promise<void> | null = null

  /** `voided` hears why nothing can be spliced behind the engine's renders, whenever that is found out. */
  constructor(engine: TokenEngine, voided: (why: string) => void) {
    this.engine = engine
    this.voided = voided
  }

  /** Null: the engine has no token routes, or nobody could ask it yet. */
  get routes(): TokenAbility | null {
    return typeof this.known === 'string' ? null : this.known.routes
  }

  /** The same where something can be spliced. */
  get ability(): TokenAbility | null {
    return this.void === null ? this.routes : null
  }

  /** Why its token routes are of no use although it has them; null where they are, or there are none. */
  get void(): string | null {
    return typeof this.known === 'string' ? null : this.known.void
  }

  /** Asks again. What was known stays until the engine has answered. Gives what differs in words, null where nothing does. */
  async relearn(): Promise<string | null> {
    if (this.known === 'unknown') return null
    const before = this.words
    try {
      await this.ask()
    } catch {
      this.known = 'unknown'
      return null
    }
    return before === this.words ? null : `token routes ${before} -> ${this.words}`
  }

  private get words(): string {
    if (this.routes === null) return 'none'
    const { way, streams } = this.routes
    return `${this.void === null ? way : 'void'}${streams ? '' : ', whole answers only'}`
  }

  /** False: nothing can be spliced. Null for an engine that could not be asked. */
  async learn(): Promise<boolean | null> {
    if (this.known === 'unknown') {
      this.asking ??= this.ask()
        .catch(() => {
          // An engine that is down now is asked again with the next session.
        })
        .finally(() => {
          this.asking = null
        })
      await this.asking
    }
    return this.known === 'unknown' ? null : this.ability !== null
  }

  private async ask(): Promise<void> {
    const ability = await this.engine.probe()
    const why = ability === null ? null : await whyVoid(this.engine, ability)
    this.known = ability === null ? 'missing' : { routes: ability, void: why }
    if (why !== null) this.voided(why)
  }
}
