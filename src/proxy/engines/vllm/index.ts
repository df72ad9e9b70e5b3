export { quirksOf, type VllmQuirks } from './quirks.ts'
export { vllmEngine, type VllmOptions } from './vllm.ts'
