export { readMemory } from './read.ts'
export { rememberReward, rememberRound, rememberUses } from './remember.ts'
export { postgresMemory, sqliteMemory } from './schema.ts'
