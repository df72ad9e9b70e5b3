export { SqliteCatalogueReader } from './catalogue-reader.ts'
export { fingerprintDigest } from './fingerprint.ts'
export { catalogueMigrations, catalogueTables, type CoveredTable } from './schema.ts'
export { SqliteCatalogue } from './sqlite-catalogue.ts'
