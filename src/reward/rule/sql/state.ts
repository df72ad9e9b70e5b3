import { isDeepStrictEqual } from 'node:util'
import { cellOf, goldCellOf } from './cell.ts'
import { equalRows } from './rows.ts'
import type { SqlSemantics } from './semantics.ts'
import type { SqlValue } from './table.ts'

/** All that a database holds: what a task that changes it is scored by. */
export interface DatabaseState {
  readonly tables: readonly StateTable[]
  /** Explicit indexes by what they cover; their names do not count. */
  readonly indexes: readonly {
    readonly table: string
    readonly columns: readonly (string | null)[]
    readonly unique: boolean
  }[]
  /** Acts on its own, or is called: each by its text. */
  readonly objects: readonly {
    readonly kind: 'trigger' | 'rule' | 'function' | 'macro'
    /** The table that it belongs to; empty: none. */
    readonly on: string
    readonly text: string
  }[]
}

export interface StateTable {
  readonly name: string
  readonly kind: 'table' | 'view'
  readonly columns: readonly {
    readonly name: string
    /** Declared type in upper case. */
    readonly type: string
    readonly notNull: boolean
    /** Place in the primary key from 1; 0: not part of it. */
    readonly key: number
  }[]
  readonly foreignKeys: readonly (readonly string[])[]
  readonly rows: readonly (readonly SqlValue[])[]
}

/** What a statement did when it was tried on a changed database: how triggers and constraints are compared. */
export interface Probe {
  readonly ok: boolean
  readonly rows: readonly (readonly SqlValue[])[]
}

export interface StateOptions {
  readonly semantics: Pick<SqlSemantics, 'tolerance' | 'nulls' | 'numberTexts'>
  /** Columns that are free, as `table.column`. */
  readonly ignoreColumns: readonly string[]
  /** Statements that are tried on both: triggers and rules of the tables that they name are compared by them, not by text. */
  readonly probes: readonly string[]
}

/**
 * The differences between two states, one line each, none when they are equal: tables and views by name, columns in
 * their order, rows as bags, foreign keys, indexes; triggers, rules, functions and macros by their text without comments, case and blanks.
 * Views are compared by what they show, not by their text.
 */
export function stateDifferences(gold: DatabaseState, answer: DatabaseState, o: StateOptions): readonly string[] {
  const wanted = byName(gold)
  const given = byName(answer)
  const lines: string[] = []
  for (const name of new Set([...wanted.keys(), ...given.keys()])) {
    const [one, other] = [wanted.get(name), given.get(name)]
    if (one === undefined) lines.push(`${name} should not exist`)
    else if (other === undefined) lines.push(`${name} is missing`)
    else lines.push(...tableDifferences(one, other, o))
  }
  if (!isDeepStrictEqual(lowerCase(gold.indexes), lowerCase(answer.indexes))) lines.push('the indexes differ')
  return [...lines, ...objectDifferences(gold, answer, o)]
}

function objectDifferences(gold: DatabaseState, answer: DatabaseState, { probes }: StateOptions): readonly string[] {
  const words = new Set(probes.flatMap((sql) => sql.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []))
  const isProbed = (table: string): boolean => words.has(table.toLowerCase().replace(/^.*\./, ''))
  const listed = ({ objects }: DatabaseState) =>
    objects
      .filter(({ on }) => on === '' || !isProbed(on))
      .map(({ kind, on, text }) => ({
        what: on === '' ? `the ${kind}s` : `the ${kind}s of ${on.toLowerCase()}`,
        text: plainSql(text),
      }))
  const [wanted, given] = [listed(gold), listed(answer)].map((list) => Map.groupBy(list, ({ what }) => what))
  const texts = (groups: typeof wanted, what: string) => (groups?.get(what) ?? []).map(({ text }) => text).toSorted()
  return [...new Set([...(wanted?.keys() ?? []), ...(given?.keys() ?? [])])].flatMap((what) =>
    isDeepStrictEqual(texts(wanted, what), texts(given, what)) ? [] : [`${what} differ`],
  )
}

/** SQL in lower case without comments, and with one blank between words and signs; what is quoted stays as it is. */
function plainSql(text: string): string {
  const parts = text.match(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[^]*?\*\/|\s+|[\p{L}\p{N}_]+|[^]/gu) ?? []
  return parts
    .filter((part) => !/^(?:--|\/\*|\s)/u.test(part))
    .map((part) => (/^['"]/.test(part) ? part : part.toLowerCase()))
    .join(' ')
    .replace(/(?: ;)+$/, '')
}

/** The differences between what probes did, one line each. */
export function probeDifferences(gold: readonly Probe[], answer: readonly Probe[], o: StateOptions): readonly string[] {
  return gold.flatMap((probe, i) => {
    const other = answer[i]
    const same =
      other !== undefined &&
      probe.ok === other.ok &&
      equalRows(cells(probe.rows, o, goldCellOf), cells(other.rows, o, cellOf), 'bag', o.semantics.tolerance)
    return same ? [] : [`probe ${i + 1} does not do the same`]
  })
}

function tableDifferences(gold: StateTable, answer: StateTable, o: StateOptions): readonly string[] {
  const shape = (table: StateTable) => ({
    kind: table.kind,
    // A view's columns have no types of their own.
    columns: table.columns.map(({ name, ...rest }) =>
      table.kind === 'view' ? name.toLowerCase() : { name: name.toLowerCase(), ...rest },
    ),
    foreignKeys: lowerCase(table.foreignKeys),
  })
  if (!isDeepStrictEqual(shape(gold), shape(answer))) return [`${gold.name} has another shape`]
  const kept = gold.columns.flatMap(({ name }, i) =>
    o.ignoreColumns.includes(`${gold.name}.${name}`.toLowerCase()) ? [] : [i],
  )
  const rows = (table: StateTable, of: typeof cellOf) =>
    cells(
      table.rows.map((row) => kept.map((i) => row[i] ?? null)),
      o,
      of,
    )
  if (equalRows(rows(gold, goldCellOf), rows(answer, cellOf), 'bag', o.semantics.tolerance)) return []
  return [`${gold.name} holds other rows (${answer.rows.length} against ${gold.rows.length})`]
}

function cells(rows: readonly (readonly SqlValue[])[], { semantics }: StateOptions, of: typeof cellOf) {
  return rows.map((row) => row.map((value) => of(value, semantics)))
}

function byName(state: DatabaseState): ReadonlyMap<string, StateTable> {
  return new Map(state.tables.map((table) => [table.name.toLowerCase(), table]))
}

// SQLite's names do not know case.
function lowerCase(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).toLowerCase())
}
