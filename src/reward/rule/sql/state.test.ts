import { describe, expect, test } from 'vitest'
import { type DatabaseState, probeDifferences, sqlPresets, stateDifferences, type StateTable } from './index.ts'

const o = { semantics: sqlPresets.strict, ignoreColumns: [], probes: [] }
const column = (name: string, type = 'INTEGER') => ({ name, type, notNull: false, key: 0 })
const orders: StateTable = {
  name: 'Orders',
  kind: 'table',
  columns: [column('id'), column('at', 'TEXT')],
  foreignKeys: [['id', 'customers', 'id']],
  rows: [
    [1n, 'a'],
    [2n, 'b'],
  ],
}
const view: StateTable = { name: 'late', kind: 'view', columns: [column('id')], foreignKeys: [], rows: [[1n]] }
const state = (...tables: readonly StateTable[]): DatabaseState => ({ tables, indexes: [], objects: [] })

describe('the state of a database', () => {
  test('is the same whatever the order of rows and the case of names', () => {
    const other = {
      ...orders,
      name: 'orders',
      rows: orders.rows.toReversed(),
      columns: [column('ID'), column('AT', 'TEXT')],
    }
    expect(stateDifferences(state(orders, view), state(view, other), o)).toEqual([])
  })

  test.each<readonly [string, StateTable, string]>([
    [
      'a changed cell',
      {
        ...orders,
        rows: [
          [1n, 'a'],
          [2n, 'c'],
        ],
      },
      'Orders holds other rows (2 against 2)',
    ],
    ['a lost row', { ...orders, rows: [[1n, 'a']] }, 'Orders holds other rows (1 against 2)'],
    [
      'a number as text',
      {
        ...orders,
        rows: [
          ['1', 'a'],
          [2n, 'b'],
        ],
      },
      'Orders holds other rows (2 against 2)',
    ],
    ['another type', { ...orders, columns: [column('id', 'REAL'), column('at', 'TEXT')] }, 'Orders has another shape'],
    ['a lost foreign key', { ...orders, foreignKeys: [] }, 'Orders has another shape'],
    ['a view instead of a table', { ...orders, kind: 'view' }, 'Orders has another shape'],
    ['another name', { ...orders, name: 'sales' }, 'orders is missing'],
  ])('differs by %s', (_what, changed, line) => {
    expect(stateDifferences(state(orders), state(changed), o)).toContain(line)
  })

  test('names what should not exist, and indexes', () => {
    expect(stateDifferences(state(orders), state(orders, view), o)).toEqual(['late should not exist'])
    const indexed = { ...state(orders), indexes: [{ table: 'Orders', columns: ['at'], unique: false }] }
    expect(stateDifferences(indexed, state(orders), o)).toEqual(['the indexes differ'])
  })

  test('knows triggers, rules, functions and macros by what their text says', () => {
    const acting = (...objects: DatabaseState['objects']): DatabaseState => ({ ...state(orders), objects })
    const trigger = (text: string, on = 'Orders') => ({ kind: 'trigger' as const, on, text })
    const plain = trigger("CREATE TRIGGER t AFTER UPDATE ON orders BEGIN SELECT 'A'; END")
    const same = trigger("create trigger T after update on Orders -- why\n begin /* not */ select 'A';end ;", 'orders')
    expect(stateDifferences(acting(plain), acting(same), o)).toEqual([])
    for (const other of [
      acting(),
      acting(plain, plain),
      acting(trigger("CREATE TRIGGER t AFTER UPDATE ON orders BEGIN SELECT 'a'; END")),
      acting({ ...plain, kind: 'rule' }),
    ]) {
      expect(stateDifferences(acting(plain), other, o)).toContain('the triggers of orders differ')
      expect(stateDifferences(other, acting(plain), o)).toContain('the triggers of orders differ')
    }
    const called = acting({ kind: 'function', on: '', text: 'CREATE FUNCTION f() …' })
    expect(stateDifferences(acting(), called, o)).toEqual(['the functions differ'])
    // Where the author tries statements, these say whether triggers do the same.
    const probed = { ...o, probes: ['INSERT INTO "Orders" VALUES (1)'] }
    expect(stateDifferences(acting(), acting(plain), probed)).toEqual([])
    expect(stateDifferences(acting(), acting(trigger('…', 'till')), probed)).toEqual(['the triggers of till differ'])
    expect(stateDifferences(acting(), called, probed)).toEqual(['the functions differ'])
  })

  test('leaves free columns alone, and only those', () => {
    const free = { ...o, ignoreColumns: ['orders.at'] }
    const changed = {
      ...orders,
      rows: [
        [1n, 'x'],
        [2n, 'y'],
      ] as const,
    }
    expect(stateDifferences(state(orders), state(changed), free)).toEqual([])
    expect(
      stateDifferences(
        state(orders),
        state({
          ...changed,
          rows: [
            [3n, 'x'],
            [2n, 'y'],
          ],
        }),
        free,
      ),
    ).toHaveLength(1)
  })

  test('shows views by what they show, not by the declared types of their columns', () => {
    const other = { ...view, columns: [column('id', '')] }
    expect(stateDifferences(state(view), state(other), o)).toEqual([])
    expect(stateDifferences(state(view), state({ ...other, rows: [] }), o)).toHaveLength(1)
  })
})

test('probes differ by how they ended and by their rows', () => {
  const gold = [
    { ok: false, rows: [] },
    { ok: true, rows: [[1n]] },
  ]
  expect(probeDifferences(gold, gold, o)).toEqual([])
  expect(
    probeDifferences(
      gold,
      [
        { ok: true, rows: [] },
        { ok: true, rows: [[2n]] },
      ],
      o,
    ),
  ).toHaveLength(2)
  expect(probeDifferences(gold, gold.slice(0, 1), o)).toEqual(['probe 2 does not do the same'])
})
