export type { ListedObject, Objects } from './contract.ts'
export { DirectoryObjects } from './directory-objects.ts'
export {
  nameOf,
  objectsOf,
  type ObjectsPlace,
  type ObjectsStore,
  objectsStoreOf,
  placeOf,
  settlePlace,
} from './place.ts'
export { type BucketFolder, type ObjectStore, S3Objects } from './s3-objects.ts'
