export { LogReader } from './log-reader.ts'
export { openRecorder, type OpenedRecorder, type RecorderOptions } from './recorder.ts'
export { logMigrations } from './schema.ts'
export { type CallRow, type SegmentRow } from './table-rows.ts'
