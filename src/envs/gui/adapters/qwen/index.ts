export { qwenAdapter } from './qwen.ts'
