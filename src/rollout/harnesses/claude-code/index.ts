export { claudeCode } from './preset.ts'
