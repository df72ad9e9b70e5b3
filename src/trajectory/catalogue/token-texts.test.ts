import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { type Sql, SqliteSql } from '../sql/index.ts'
import { migrate } from '../sqlite/index.ts'
import { catalogueMigrations, SqlCatalogue } from './index.ts'

it('writes only texts of tokens that are not there: each hand-in brings those of all its tokens', async () => {
  const db = new Database(':memory:')
  migrate(db, catalogueMigrations, 0)
  const asked: string[] = []
  const sql = new SqliteSql(db)
  const all: Sql['all'] = async (text, ...values) => {
    asked.push(text.trim().split(/\s/)[0] ?? '')
    return sql.all(text, ...values)
  }
  sql.transaction = async (work) => work(heard)
  const heard = Object.assign(Object.create(sql) as SqliteSql, { all })
  const catalogue = new SqlCatalogue(heard)
  const texts = (count: number) => new Map(Array.from({ length: count }, (_, n) => [n, Uint8Array.from([n % 256])]))
  await catalogue.putTokenTexts('t', texts(300))
  expect(asked.splice(0)).toEqual(['SELECT', ...Array.from({ length: 300 }, () => 'INSERT')])
  await catalogue.putTokenTexts('t', texts(300))
  expect(asked.splice(0)).toEqual(['SELECT'])
  await catalogue.putTokenTexts('t', texts(301))
  expect(asked.splice(0)).toEqual(['SELECT', 'INSERT'])
  expect([...(await catalogue.tokenTexts('t', [0, 299, 300])).keys()]).toEqual([0, 299, 300])
  // The first text of a token stands, and those of another tokenizer are others.
  await catalogue.putTokenTexts('t', new Map([[1, Uint8Array.from([9])]]))
  await catalogue.putTokenTexts('u', new Map([[1, Uint8Array.from([8])]]))
  expect((await catalogue.tokenTexts('t', [1])).get(1)).toEqual(Uint8Array.from([1]))
  expect((await catalogue.tokenTexts('u', [1])).get(1)).toEqual(Uint8Array.from([8]))
  db.close()
})
