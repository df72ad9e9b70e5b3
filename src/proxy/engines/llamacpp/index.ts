export { llamacppEngine, type LlamacppOptions } from './llamacpp.ts'
export { llamacppTokens, serverProps, templateTakesTools } from './token-routes.ts'
