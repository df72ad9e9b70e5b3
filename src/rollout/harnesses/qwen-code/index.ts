export { qwenCode } from './preset.ts'
