import type { Theme } from './themes.ts'

/** A question with its gold, and what somebody hands in who overlooks a condition of it. */
export interface Question {
  readonly question: string
  readonly gold: string
  readonly weak: string
}

const months = Array.from({ length: 10 }, (_, i) => `2025-${String(i + 1).padStart(2, '0')}-15`)

/** The questions of a level, each at least fifty: one table, groups of one, two tables, three of them, the first of each group. */
export const levels: readonly ((theme: Theme) => readonly Question[])[] = [
  oneTable,
  groupsOfOne,
  twoTables,
  threeTables,
  firstOfEach,
]

function oneTable({ thing, kinds }: Theme): readonly Question[] {
  const from = `FROM ${thing.table}`
  const prices = Array.from({ length: 9 }, (_, i) => (i + 1) * 1900)
  return kinds.flatMap((kind) => [
    ...prices.map((price) => ({
      question: `How many ${thing.many} of the kind "${kind}" have a price of more than ${price} cents?`,
      gold: `SELECT count(*) ${from} WHERE kind = '${kind}' AND price_cents > ${price}`,
      weak: `SELECT count(*) ${from} WHERE price_cents > ${price}`,
    })),
    ...(['highest', 'lowest'] as const).map((which) => ({
      question: `What is the ${which} price, in cents, of the ${thing.many} of the kind "${kind}"?`,
      gold: `SELECT ${which === 'highest' ? 'max' : 'min'}(price_cents) ${from} WHERE kind = '${kind}'`,
      weak: `SELECT avg(price_cents) ${from} WHERE kind = '${kind}'`,
    })),
  ])
}

function groupsOfOne({ deed }: Theme): readonly Question[] {
  const amounts = [900, 1700, 2500, 3300, 4100, 4900]
  return months.flatMap((day) =>
    amounts.map((amount) => {
      const query = (where: string) =>
        `SELECT state, count(*) FROM ${deed.table} WHERE ${where} GROUP BY state ORDER BY count(*) DESC, state`
      return {
        question:
          `How many ${deed.many} of at least ${amount} cents were there on or after ${day}, for each state? Give the state and the ` +
          `number, largest number first; equal numbers by state.`,
        gold: query(`amount_cents >= ${amount} AND day >= '${day}'`),
        weak: query(`amount_cents >= ${amount}`),
      }
    }),
  )
}

function twoTables({ thing, deed, states }: Theme): readonly Question[] {
  const measures = [
    { words: 'the total amount of', sql: 'sum(d.amount_cents)' },
    { words: 'the number of', sql: 'count(*)' },
  ]
  return months.flatMap((day) =>
    states.flatMap((state) =>
      measures.map(({ words, sql }) => {
        const query = (where: string) =>
          `SELECT t.kind, ${sql} AS measure FROM ${deed.table} d JOIN ${thing.table} t ON t.id = d.${thing.table}_id ` +
          `WHERE ${where} GROUP BY t.kind ORDER BY measure DESC, t.kind`
        return {
          question:
            `For each kind of ${thing.one}: what is ${words} the ${deed.many} with the state "${state}" on or after ${day}? Leave out ` +
            `kinds without any. Give the kind and that number, largest first; equal ones by kind.`,
          gold: query(`d.state = '${state}' AND d.day >= '${day}'`),
          weak: query(`d.day >= '${day}'`),
        }
      }),
    ),
  )
}

function threeTables(theme: Theme): readonly Question[] {
  const { place, thing, deed, kinds, states } = theme
  const joined = joinOf(theme)
  return kinds.flatMap((kind) =>
    states.flatMap((state) => {
      const never = (condition: string) =>
        `SELECT t.name, p.name FROM ${thing.table} t JOIN ${place.table} p ON p.id = t.${place.table}_id WHERE t.kind = '${kind}' ` +
        `AND NOT EXISTS (SELECT 1 FROM ${deed.table} d WHERE d.${thing.table}_id = t.id${condition}) ORDER BY t.name`
      return [
        ...[1, 2, 3].map((least) => {
          const query = (where: string) =>
            `SELECT p.name, count(*) AS number FROM ${joined} WHERE ${where} GROUP BY p.id HAVING count(*) >= ${least} ` +
            `ORDER BY number DESC, p.name`
          return {
            question:
              `Which ${place.many} had at least ${least} ${least === 1 ? deed.one : deed.many} with the state "${state}" of ` +
              `${thing.many} of the kind "${kind}"? Give the name of the ${place.one} and their number, largest number first; equal ` +
              `numbers by name.`,
            gold: query(`t.kind = '${kind}' AND d.state = '${state}'`),
            weak: query(`d.state = '${state}'`),
          }
        }),
        {
          question:
            `Which ${thing.many} of the kind "${kind}" had no ${deed.one} with the state "${state}"? Give the name of the ${thing.one} ` +
            `and of its ${place.one}, by name of the ${thing.one}.`,
          gold: never(` AND d.state = '${state}'`),
          weak: `SELECT t.name, p.name FROM ${joined} WHERE t.kind = '${kind}' AND d.state <> '${state}' ORDER BY t.name`,
        },
      ]
    }),
  )
}

function firstOfEach(theme: Theme): readonly Question[] {
  const { place, thing, deed, states } = theme
  const groups = [
    { words: 'each city', sql: 'p.city' },
    { words: `each kind of ${thing.one}`, sql: 't.kind' },
  ]
  return months.flatMap((day) =>
    states.flatMap((state) =>
      groups.map(({ words, sql }) => {
        const query = (where: string) =>
          `SELECT part, name, home, total FROM (SELECT ${sql} AS part, t.name AS name, p.name AS home, sum(d.amount_cents) AS total, ` +
          `row_number() OVER (PARTITION BY ${sql} ORDER BY sum(d.amount_cents) DESC, t.name) AS place FROM ${joinOf(theme)} ` +
          `WHERE ${where} GROUP BY t.id) WHERE place = 1 ORDER BY part`
        return {
          question:
            `For ${words}: which ${thing.one} has the greatest total amount of ${deed.many} with the state "${state}" on or after ${day}? ` +
            `Of equal ones the first by name. Give the ${sql === 'p.city' ? 'city' : 'kind'}, the name of the ${thing.one}, the name of ` +
            `its ${place.one} and the total in cents, in the order of the first column. The city is that of its ${place.one}.`,
          gold: query(`d.state = '${state}' AND d.day >= '${day}'`),
          weak: query(`d.day >= '${day}'`),
        }
      }),
    ),
  )
}

function joinOf({ place, thing, deed }: Theme): string {
  return `${deed.table} d JOIN ${thing.table} t ON t.id = d.${thing.table}_id JOIN ${place.table} p ON p.id = t.${place.table}_id`
}
