export { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
export {
  type BlobsOptions,
  isInObjectStore,
  openBlobReader,
  openBlobs,
  type OpenedBlobs,
  probeBlobs,
} from './open-blobs.ts'
export type { ListedObject, Objects } from './objects.ts'
export { type ObjectStore, S3Objects } from './s3/index.ts'
