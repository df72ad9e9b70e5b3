export { fsck, type FsckReport } from './fsck.ts'
