import type { Digest, EngineFingerprint } from '../../core/index.ts'
import type { EngineAdapter } from './contract.ts'
import { differenceOf, type KnownFacts } from './facts.ts'

/** An engine that does not answer this soon is not waited for: a harness or a commit is. */
const waitMs = 2000

export interface KnownEngineParts {
  readonly engine: Pick<EngineAdapter, 'learn'>
  /** Stores a fingerprint; without it nothing is learned. */
  readonly put: ((fingerprint: EngineFingerprint) => Promise<Digest>) | null
  /**
   * It was asked anew; `difference` in words where it became another one. What else is known of it is asked again before
   * anybody goes on: the same engine may come back with other routes. Does not reject.
   */
  readonly renewed: (difference: string | null) => Promise<void>
}

/**
 * What an engine is now. It is asked once, and again when it may have become another one: behind a lost connection, a
 * time without health, new weights.
 */
export class KnownEngine {
  /** Null until an engine has answered. One object for as long as nothing changes. */
  facts: KnownFacts | null = null
  private readonly parts: KnownEngineParts
  private doubt: 'none' | 'some' | 'gone'
  private learning: Promise<void> | null = null

  constructor(parts: KnownEngineParts) {
    this.parts = parts
    this.doubt = parts.put === null ? 'none' : 'some'
  }

  /** It may be another one than {@link facts} say, or is not known yet. */
  get doubtful(): boolean {
    return this.doubt !== 'none' || this.learning !== null
  }

  /** `gone`: nobody listened for a while, so that what cannot be asked for has to be found out. */
  suspect({ gone }: { readonly gone: boolean }): void {
    if (this.parts.put === null) return
    if (this.doubt !== 'gone') this.doubt = gone ? 'gone' : 'some'
  }

  /** Asks where there is doubt. Never rejects: an engine that is down is asked again by the next one who wants to know. */
  learn(): Promise<void> {
    if (this.learning !== null) return this.learning
    if (this.doubt === 'none') return Promise.resolve()
    this.learning = this.ask().finally(() => {
      this.learning = null
    })
    return this.learning
  }

  /** The same for those who cannot wait for long. */
  async learnSoon(): Promise<void> {
    const limit = Promise.withResolvers<void>()
    const timer = setTimeout(limit.resolve, waitMs)
    await Promise.race([this.learn(), limit.promise])
    clearTimeout(timer)
  }

  private async ask(): Promise<void> {
    const { engine, put, renewed } = this.parts
    const gone = this.doubt === 'gone'
    // What is doubted while it answers is asked again.
    this.doubt = 'none'
    const before = this.facts
    try {
      let facts = await engine.learn({ probes: gone && before !== null })
      if (before !== null && !gone && differenceOf(before, facts) !== null) facts = await engine.learn({ probes: true })
      const difference = before === null ? null : differenceOf(before, facts)
      if (put === null) return
      if (before === null || difference !== null) this.facts = { ...facts, digest: await put(facts.fingerprint) }
      if (before !== null) await renewed(difference)
    } catch {
      this.suspect({ gone })
    }
  }
}
