export { backup, type BackupReport } from './backup.ts'
