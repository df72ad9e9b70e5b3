export { openaiAdapter } from './openai.ts'
