export { announceOwner, liveOwner, type Owner, ownerBusy } from './lock.ts'
export { openReader } from './open-reader.ts'
export { openStore, type OwnedStore, type StoreOptions } from './open-store.ts'
export { rememberCatalogue, requireSameCatalogue } from './same-catalogue.ts'
export { setAside } from './set-aside.ts'
export { homeOf } from './shared.ts'
export { requireSameLog, storeFiles } from './same-log.ts'
export {
  openPostgresCatalogue,
  probePostgresCatalogue,
  type PostgresCatalogue,
  type PostgresCatalogueOptions,
} from './postgres.ts'
