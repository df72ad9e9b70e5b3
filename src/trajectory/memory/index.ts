export { readMemory } from './read.ts'
export { rememberReward, rememberRound, rememberUses } from './remember.ts'
export { postgresMemory, postgresUsedAt, sqliteMemory, sqliteUsedAt } from './schema.ts'
