export { conflictsNamed } from './conflicts.ts'
export { asStoreError, damageNamed } from './damage.ts'
export {
  chained,
  type ColumnValue,
  type DigestedTable,
  hasDigest,
  insertOf,
  rowDigest,
  selectOf,
  whole,
  wholeRows,
} from './digests.ts'
export {
  readDigest,
  readId,
  readIdOrNull,
  storedDigest,
  type StoredId,
  storedId,
  storedIdOrNull,
  uuidBytes,
  writeDigest,
  writeUuid,
} from './ids.ts'
export { type Migration, migrate, requireSchema, schemaVersion } from './migrate.ts'
export { makePrivate, openForReading, openForWriting, type OwnerOptions, type Synchronous } from './open.ts'
export { Moved, type Operations, perform, sayHello, serveEach } from './serve.ts'
export { Statements } from './statements.ts'
export { StoreThread, type ThreadLimits } from './thread.ts'
export { fromWire, type ThreadAnswer, type ThreadRequest, toWire } from './wire.ts'
