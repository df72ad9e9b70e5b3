export { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
export {
  type BlobsOptions,
  isInObjectStore,
  openBlobReader,
  openBlobs,
  type OpenedBlobs,
  probeBlobs,
} from './open-blobs.ts'
export type { ObjectStore } from './s3/index.ts'
