export { codex } from './preset.ts'
