export { geminiCli } from './preset.ts'
