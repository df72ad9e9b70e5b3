import type { EngineControl } from '../engines/control.ts'

/** How long an answer that is ready waits to learn its weights. On a busy machine an engine may take seconds to name them. */
const patienceMs = 30_000
/** As long after a reading that took longer than that, until one answers again: such an engine names nothing. */
const shortMs = 2000

/**
 * What is known of a replica's weight version: told by its replies, by its version route, and by updates that went
 * through the control API. A call that ends between two readings is settled by the next one.
 */
export class KnownWeights {
  /** The last version seen, null while nothing is known. */
  version: string | null = null
  /** Some version followed another one: prefixes of the older one may still be cached. */
  changed = false
  private readonly control: EngineControl | null
  private route: 'unknown' | 'present' | 'missing' = 'unknown'
  private limitMs = patienceMs
  private reading: Promise<string | null> | null = null
  private next: Promise<string | null> | null = null

  constructor(control: EngineControl | null) {
    this.control = control
    if (control === null) this.route = 'missing'
  }

  /** Nobody can say now, and asking finds out nothing. */
  get untold(): boolean {
    return this.version === null && this.route === 'missing'
  }

  /** The server itself names its weights when it is asked. */
  get told(): boolean {
    return this.route === 'present'
  }

  note(version: string): void {
    if (this.version !== null && this.version !== version) this.changed = true
    this.version = version
  }

  /** The replica may have been started anew: what was known holds no longer. */
  forget(): void {
    this.version = null
    if (this.control !== null) this.route = 'unknown'
  }

  /** A version that was in force after this call was made; readings are shared. Null where nobody can say. */
  read(): Promise<string | null> {
    if (this.route === 'missing') return Promise.resolve(this.version)
    // One that has begun may have been answered before what the caller wants to know about.
    if (this.reading !== null) {
      this.next ??= this.reading.then(() => {
        this.next = null
        return this.read()
      })
      return this.next
    }
    this.reading = this.ask().finally(() => {
      this.reading = null
    })
    return this.reading
  }

  private async ask(): Promise<string | null> {
    if (this.control === null) return null
    const limit = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      this.limitMs = shortMs
      limit.reject(new Error('the version route is silent'))
    }, this.limitMs)
    try {
      const version = await Promise.race([this.control.weightVersion(), limit.promise])
      this.limitMs = patienceMs
      if (version === null) {
        if (this.route === 'unknown') this.route = 'missing'
        return this.route === 'missing' ? this.version : null
      }
      this.route = 'present'
      this.note(version)
      return version
    } catch {
      return null
    } finally {
      clearTimeout(timer)
    }
  }
}
