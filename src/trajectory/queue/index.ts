export { SqliteQueue } from './sqlite-queue.ts'
