export { backup, type BackupReport } from './backup.ts'
export { restore, type RestoreReport } from './restore.ts'
