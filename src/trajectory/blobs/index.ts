export { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
export {
  type BlobsOptions,
  areElsewhere,
  openBlobReader,
  openBlobs,
  type OpenedBlobs,
  probeBlobs,
} from './open-blobs.ts'
export { SpooledBlobs, type SpoolOptions } from './spooled-blobs.ts'
