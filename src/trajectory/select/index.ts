export type { RequestReader } from './conversation.ts'
export { type SelectionSource, selectForExport } from './select.ts'
export { verdictInForce } from './verdict-in-force.ts'
