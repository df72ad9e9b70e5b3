export { blobsContract, type BlobsUnderTest } from './blobs.ts'
export { catalogueContract, type CatalogueUnderTest } from './catalogue.ts'
export { queueContract, type QueueUnderTest } from './queue.ts'
export { recorderContract, type RecorderUnderTest } from './recorder.ts'
export {
  growingBody,
  plainPolicy,
  sampleCommit,
  sampleIntent,
  sampleSegment,
  sampleSession,
  sampleTokens,
} from './samples.ts'
