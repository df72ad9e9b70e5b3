import type { TokenAbility, TokenEngine } from '../engines/token-engine.ts'

/** What is known of an engine's token routes; asked once, and again after a failure to reach it. */
export class KnownAbility {
  private readonly engine: TokenEngine
  private known: TokenAbility | 'missing' | 'unknown' = 'unknown'
  private asking: Promise<void> | null = null

  constructor(engine: TokenEngine) {
    this.engine = engine
  }

  /** Null: the engine has no token routes, or nobody could ask it yet. */
  get ability(): TokenAbility | null {
    return typeof this.known === 'string' ? null : this.known
  }

  /** Asks again. What was known stays until the engine has answered. */
  async relearn(): Promise<void> {
    if (this.known === 'unknown') return
    try {
      this.known = (await this.engine.probe()) ?? 'missing'
    } catch {
      this.known = 'unknown'
    }
  }

  /** Null for an engine that could not be asked. */
  async learn(): Promise<boolean | null> {
    if (this.known === 'unknown') {
      this.asking ??= this.engine
        .probe()
        .then((ability) => {
          this.known = ability ?? 'missing'
        })
        .catch(() => {
          // An engine that is down now is asked again with the next session.
        })
        .finally(() => {
          this.asking = null
        })
      await this.asking
    }
    return this.known === 'unknown' ? null : this.known !== 'missing'
  }
}
