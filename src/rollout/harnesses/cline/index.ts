export { cline } from './preset.ts'
