export { sql } from './environment.ts'
export { noteTags } from './record.ts'
