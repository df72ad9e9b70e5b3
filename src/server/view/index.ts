export type * from './contract.ts'
export { serveView, type ViewServer } from './serve-view.ts'
