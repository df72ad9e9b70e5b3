import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { ConnectionGuard } from '../postgres/index.ts'

/** What a database's history was when it was last looked at. */
export interface KnownHistory {
  /** PostgreSQL counts it up when a standby is promoted, or a backup is brought to a point in time. */
  readonly timeline: number
  /** Whether what was committed stood on a standby too before anybody heard of it. */
  readonly synchronous: boolean
  /** How often it went on from a moment that may lack what was committed before. */
  readonly rewound: number
}

/** What of its history a server tells. */
const answer = z.tuple([z.object({ timeline: z.int(), synchronous: z.boolean() })])
type Told = Pick<KnownHistory, 'timeline' | 'synchronous'>

/** The first eight digits of the name of its log. A standby that is not promoted refuses it. */
const question = `SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS timeline,
  current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') NOT IN ('off', 'local')
    AS synchronous`

/**
 * Sees that a database goes on from a moment in the past: a standby was promoted that did not have to have what was committed. From then
 * on nobody gets a connection, since what this process knows may never have been. A promoted standby that had to have it is no other history.
 */
export class HistoryGuard implements ConnectionGuard {
  #told: Told | null = null
  #known: KnownHistory | null = null
  #remember: ((known: KnownHistory) => void) | null = null
  #error: PaddockError | null = null
  readonly #onRewound: (error: PaddockError) => void

  constructor(onRewound: (error: PaddockError) => void) {
    this.#onRewound = onRewound
  }

  /** How often the database was rewound. */
  get rewound(): number {
    return this.#known?.rewound ?? 0
  }

  /** Throws `CATALOGUE_REWOUND` once that was seen. */
  requireSame(): void {
    if (this.#error !== null) throw this.#error
  }

  /** Asks over a new connection. Throws `CATALOGUE_REWOUND`. */
  async look(ask: (text: string) => Promise<{ readonly rows: readonly unknown[] }>): Promise<void> {
    const [told] = answer.parse((await ask(question)).rows)
    this.#told = told
    this.#compare(told)
  }

  /**
   * From now on histories are compared with what was known of this database (null: nothing). Throws `CATALOGUE_REWOUND` where it was
   * rewound since; what it is now is remembered then, and whoever opens it next goes on with it.
   */
  arm(known: KnownHistory | null, remember: (known: KnownHistory) => void): void {
    this.#known = known
    this.#remember = remember
    if (this.#told !== null) this.#compare(this.#told)
  }

  #compare(told: Told): void {
    if (this.#remember === null) return
    this.requireSame()
    const known = this.#known ?? { ...told, rewound: 0 }
    const isLater = told.timeline > known.timeline
    if (told.timeline === known.timeline || (isLater && known.synchronous)) {
      this.#now({ ...told, rewound: known.rewound })
      return
    }
    // A server of before is none to go on with, at the next start either.
    if (isLater) this.#now({ ...told, rewound: known.rewound + 1 })
    const how = isLater ? 'a server that may lack what was committed' : 'the server of before'
    this.#error = new PaddockError(
      'CATALOGUE_REWOUND',
      `the catalogue is on timeline ${told.timeline} of PostgreSQL, and was on ${known.timeline}: ${how} stands in its place`,
      { data: { timeline: told.timeline, was: known.timeline } },
    )
    this.#onRewound(this.#error)
    throw this.#error
  }

  #now(known: KnownHistory): void {
    if (JSON.stringify(known) !== JSON.stringify(this.#known)) this.#remember?.(known)
    this.#known = known
  }
}
