export { tagAgent } from './agent.ts'
export { reExSql, skyRlSql, type TagProtocol } from './protocol.ts'
