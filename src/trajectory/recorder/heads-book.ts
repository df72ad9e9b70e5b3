/**
 * What the catalogue remembers of the log: which one it is, and for each session how many records it has and what their
 * digests come to. It is written behind each round of facts, so that the log never has less than it says.
 */
import type { Database } from 'better-sqlite3'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { Place } from '../journal/index.ts'
import { readId, Statements, type StoredId } from '../sqlite/index.ts'
import { type ChainEnd, chainOf, type Chains, type SessionChain } from './chains.ts'

/** The log as the catalogue remembers it. */
export interface RememberedLog {
  readonly id: string
  readonly place: Place
  /** The chain of events. */
  readonly events: ChainEnd
}

/** Null: this catalogue has not seen a log. */
export function rememberedLog(catalogue: Database): RememberedLog | null {
  const row = new Statements(catalogue).get<{
    id: string
    generation: number
    ingested_to: number
    events: number
    events_head: number
  }>('SELECT * FROM log_state')
  if (row === undefined) return null
  const { id, generation, ingested_to: offset, events: count, events_head: head } = row
  return { id, place: { generation, offset }, events: { count, head } }
}

/** All sessions that the catalogue remembers. */
export function rememberedHeads(catalogue: Database): readonly SessionChain[] {
  return new Statements(catalogue).all<SessionChain>('SELECT id, rollout, count, head FROM log_heads ORDER BY id')
}

/** Writes into the catalogue what the log has. */
export class HeadsBook {
  readonly #log: Statements
  readonly #catalogue: Database
  readonly #statements: Statements

  constructor(log: Database, catalogue: Database) {
    this.#log = new Statements(log)
    this.#catalogue = catalogue
    this.#statements = new Statements(catalogue)
  }

  /** Remembers a log that was seen for the first time. */
  begin(id: string): void {
    this.#statements.run(
      `INSERT INTO log_state (one, id, generation, ingested_to, events, events_head) VALUES (1, ?, 0, 0, 0, 0)
       ON CONFLICT DO NOTHING`,
      id,
    )
  }

  /** Tells what went on since the last time, up to `place`. */
  tell(chains: Chains, place: Place, events: ChainEnd): void {
    this.#catalogue
      .transaction(() => {
        for (const chain of chains.changed()) this.#tellOne(chain)
        this.#tellPlace(place, events)
      })
      .immediate()
    chains.settled()
  }

  /**
   * Tells all that the log has, where its last owner did not live to. A session that has fewer records than remembered,
   * or others, stays as it is remembered: `paddock fsck` names it. `again`: the journal held what the log had lost, and
   * rows may have come out in another order than before. Returns how many sessions are damaged.
   */
  tellAll(place: Place, events: ChainEnd, again: boolean): number {
    const remembered = new Map(rememberedHeads(this.#catalogue).map((chain) => [readId(chain.id), chain]))
    let damaged = 0
    this.#catalogue
      .transaction(() => {
        for (const row of this.#log.all<SessionChain & { n: number }>('SELECT n, id, rollout FROM sessions')) {
          const before = remembered.get(readId(row.id))
          remembered.delete(readId(row.id))
          const end = this.#sound(row.n, again ? undefined : before)
          if (end === null) damaged += 1
          else this.#tellOne({ ...row, ...end })
        }
        this.#tellPlace(place, events)
      })
      .immediate()
    return damaged + remembered.size
  }

  /** Throws `STORE_CORRUPT` where a session has lost records, so that nothing is put in their place. */
  mustBeWhole(session: number, id: StoredId): void {
    const remembered = this.#statements.get<SessionChain>('SELECT * FROM log_heads WHERE id = ?', id)
    if (remembered === undefined || isAsRemembered(this.#log, session, remembered)) return
    throw new PaddockError('STORE_CORRUPT', `session ${readId(id)} has lost or changed records`, {
      fix: 'Run `paddock fsck` to see which, and `paddock salvage` to take over what is whole.',
    })
  }

  /** True where that many records of a session are remembered, or more. */
  remembers(id: StoredId, count: number): boolean {
    const row = this.#statements.get<ChainEnd>('SELECT count, head FROM log_heads WHERE id = ?', id)
    return row !== undefined && row.count >= count
  }

  close(): void {
    this.#catalogue.close()
  }

  #sound(session: number, remembered: ChainEnd | undefined): ChainEnd | null {
    try {
      if (remembered !== undefined && !isAsRemembered(this.#log, session, remembered)) return null
      return chainOf(this.#log, session)
    } catch (error) {
      if (isPaddockError(error) && error.code === 'STORE_CORRUPT') return null
      throw error
    }
  }

  #tellOne({ id, rollout, count, head }: SessionChain): void {
    this.#statements.run(
      `INSERT INTO log_heads (id, rollout, count, head) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET count = excluded.count, head = excluded.head`,
      id,
      rollout,
      count,
      head,
    )
  }

  #tellPlace({ generation, offset }: Place, { count, head }: ChainEnd): void {
    this.#statements.run(
      'UPDATE log_state SET generation = ?, ingested_to = ?, events = ?, events_head = ?',
      generation,
      offset,
      count,
      head,
    )
  }
}

function isAsRemembered(log: Statements, session: number, remembered: ChainEnd): boolean {
  const { count, head } = chainOf(log, session, remembered.count)
  return count === remembered.count && head === remembered.head
}
