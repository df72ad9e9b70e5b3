export { type Lack, vllmLacks } from './flags.ts'
export { quirksOf, type VllmQuirk, type VllmQuirkName, vllmQuirks } from './quirks.ts'
export { vllmTokens } from './token-routes.ts'
export { vllmEngine, type VllmOptions } from './vllm.ts'
