export { opencode } from './preset.ts'
