export { anthropicAdapter, type AnthropicVersion } from './anthropic.ts'
