export { serverInfo } from './about.ts'
export { sglangQuirks, type SglangQuirks } from './quirks.ts'
export { sglangEngine, type SglangOptions } from './sglang.ts'
export { sglangTokens } from './token-routes.ts'
