export { fsck } from './fsck.ts'
export type { FsckReport } from './report.ts'
export { attempt, checkJournal } from './log-checks.ts'
