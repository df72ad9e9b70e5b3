export { byTurns } from './by-turns.ts'
export { Floor } from './floor.ts'
export { type AgentHarnesses, requireAgents } from './require.ts'
export { AgentSessions } from './sessions.ts'
