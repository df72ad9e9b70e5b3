export { type LogLevel, logLevels } from './levels.ts'
export { type Log, type LogOptions, openLog, silentLog } from './log.ts'
export { withoutSecrets } from './redact.ts'
