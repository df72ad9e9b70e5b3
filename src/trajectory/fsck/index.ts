export { fsck } from './fsck.ts'
export type { FsckReport } from './report.ts'
