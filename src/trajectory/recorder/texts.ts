/** Facts and bodies of calls as read from the `calls` table, each call's on top of its base's. */
import { PaddockError } from '../../core/index.ts'
import { readId, selectOf, type Statements, whole } from '../sqlite/index.ts'
import { asBase, type BaseCall, checkBody, isKeyframe, type TextDelta, type Texts, unpackTexts } from './bodies.ts'
import { applyDelta } from './delta.ts'
import { logTables } from './schema.ts'
import type { CallRow } from './table-rows.ts'

/** How a row's texts stand to those of its base. */
function deltaOf(row: CallRow): TextDelta {
  return {
    depth: row.depth,
    facts: { prefix: row.facts_prefix, suffix: row.facts_suffix },
    body: { prefix: row.body_prefix, suffix: row.body_suffix },
    sha256: row.body_sha256,
  }
}

const selectCall = selectOf(logTables.calls, 'WHERE n = ?', ['n'])

interface Entry {
  readonly row: CallRow
  readonly facts: Uint8Array
  /** Null: still packed. */
  bodyMiddle: Uint8Array<ArrayBuffer> | null
  body: Uint8Array<ArrayBuffer> | null
}

/** A call's texts on those of its base. */
function entryOn(base: Entry | null, row: CallRow): Entry {
  // Facts are one JSON object: none begins with all of another one but that one itself, and nothing is inflated to see it.
  if (base !== null && row.facts_prefix === base.facts.byteLength) {
    return { row, facts: base.facts, bodyMiddle: null, body: null }
  }
  const { facts, body } = unpackTexts(row.pack)
  if (base === null) return { row, facts, bodyMiddle: body, body }
  return { row, facts: applyDelta(base.facts, deltaOf(row).facts, facts), bodyMiddle: body, body: null }
}

function bodyMiddle(entry: Entry): Uint8Array<ArrayBuffer> {
  entry.bodyMiddle ??= unpackTexts(entry.row.pack).body
  return entry.bodyMiddle
}

/** Reads texts by call, keeping what later calls may stand on. Bodies are put together only when asked for. */
export class TextReader {
  readonly #statements: Statements
  readonly #entries = new Map<number, Entry>()
  readonly #rows: ReadonlyMap<number, CallRow>

  /** `rows`: calls that are at hand, checked. */
  constructor(statements: Statements, rows: readonly CallRow[] = []) {
    this.#statements = statements
    this.#rows = new Map(rows.map((row) => [row.n, row]))
  }

  /** Facts of a call, the same bytes where they are those of its base; `body` is empty. Throws `STORE_CORRUPT`. */
  readFacts(row: CallRow): Texts {
    return { facts: this.#entry(row).facts, body: new Uint8Array(0) }
  }

  /** Facts and body, whose digest is checked. Throws `STORE_CORRUPT`. */
  read(row: CallRow): Texts {
    const entry = this.#entry(row)
    const texts = { facts: entry.facts, body: this.#body(entry) }
    checkBody(deltaOf(row), texts)
    return texts
  }

  /** A stored call as a base for the next one of its session. */
  base(row: CallRow): BaseCall {
    let first = row
    while (!isKeyframe(first.depth) && first.base !== null) first = this.#row(first.base)
    return asBase(this.#asCall(row), first === row ? null : asBase(this.#asCall(first), null))
  }

  #asCall(row: CallRow): Omit<BaseCall, 'keyframe'> {
    const shared = { facts: row.facts_prefix, body: row.body_prefix }
    return { id: readId(row.id), depth: row.depth, ...this.read(row), digest: null, shared }
  }

  #entry(row: CallRow): Entry {
    const chain: CallRow[] = []
    let next: CallRow | null = row
    while (next !== null && !this.#entries.has(next.n)) {
      chain.push(next)
      next = next.base === null ? null : this.#row(next.base)
    }
    let entry = next === null ? null : this.#known(next.n)
    for (const link of chain.toReversed()) {
      entry = entryOn(entry, link)
      this.#entries.set(link.n, entry)
    }
    return entry ?? this.#known(row.n)
  }

  #body(entry: Entry): Uint8Array<ArrayBuffer> {
    const chain: Entry[] = []
    let base = entry
    while (base.body === null && base.row.base !== null) {
      chain.push(base)
      base = this.#known(base.row.base)
    }
    let body = base.body ?? bodyMiddle(base)
    for (const link of chain.toReversed()) {
      body = applyDelta(body, deltaOf(link.row).body, bodyMiddle(link))
      link.body = body
    }
    return body
  }

  #row(n: number): CallRow {
    const known = this.#entries.get(n)?.row ?? this.#rows.get(n)
    if (known !== undefined) return known
    const row = this.#statements.get<CallRow>(selectCall, n)
    if (row === undefined) throw new PaddockError('STORE_CORRUPT', `call ${n} is missing under a stored difference`)
    return whole(logTables.calls, row)
  }

  #known(n: number): Entry {
    const entry = this.#entries.get(n)
    if (entry === undefined) throw new PaddockError('STORE_CORRUPT', `the texts of call ${n} stand on a missing call`)
    return entry
  }
}
