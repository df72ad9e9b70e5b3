export { openaiExporter } from './openai.ts'
