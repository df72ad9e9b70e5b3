export { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
