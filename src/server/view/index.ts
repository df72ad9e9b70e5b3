export type * from './contract.ts'
export type { Annotator } from './annotate.ts'
export type { Viewer } from './access.ts'
export { serveView, type ViewServer } from './serve-view.ts'
