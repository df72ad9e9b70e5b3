export { type Dialect, first, type Lockable, type Sql } from './sql.ts'
export { SqliteSql } from './sqlite-sql.ts'
export { insert, wholeRows } from './whole-rows.ts'
