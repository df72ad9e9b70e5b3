export { asset, assetFile } from './assets.ts'
export { withImporters } from './compose.ts'
export { defineImporter, type Importer, type ImporterSpec, type ImportOptions, type Place } from './contract.ts'
export { forwardSite } from './forward.ts'
export {
  fitted,
  Imported,
  invalid,
  oracleScript,
  readJson,
  requireKnown,
  screenShape,
  setShape,
  shownShape,
} from './set.ts'
export { type Elsewhere, type Found, measureElsewhere, programOf, type Sidecar, sidecarSchema } from './sidecar.ts'
export { requireTrust } from './trust.ts'
