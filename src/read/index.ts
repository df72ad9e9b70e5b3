export { type ToolResult, toolResultsOf } from './tool-results.ts'
export { commonPrefix, type ReadMessage, readMessage } from './messages.ts'
export { rowsOf, type SegmentMask, segmentMasks } from './rows.ts'
export {
  betweenHelp,
  betweenOf,
  memoryQueryOf,
  momentHelp,
  momentOf,
  splitKeys,
  taskPage,
  taskPageView,
  taskQuery,
} from './task-query.ts'
export { knownTokenTexts, tokenizerKey, type TokenTexts } from '../trajectory/index.ts'
export { callView, rolloutView, sessionLogView, sessionView, type TokenCounts, tokenCounts } from './views.ts'
