export { openPostgresQueue, type PostgresQueueOptions } from './open.ts'
export type { PostgresQueue } from './postgres-queue.ts'
