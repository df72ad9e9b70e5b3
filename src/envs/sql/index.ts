export { sql } from './environment.ts'
