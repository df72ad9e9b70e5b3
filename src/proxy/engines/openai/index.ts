export { openaiEngine, type OpenaiOptions } from './openai.ts'
