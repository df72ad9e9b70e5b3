export { S3Objects, type ObjectsOptions } from './objects.ts'
export { blobPlaceOf, type BlobPlace, type ObjectStore, settleBlobPlace } from './place.ts'
export { SpooledBlobReader, SpooledBlobs, type SpoolOptions } from './spooled-blobs.ts'
