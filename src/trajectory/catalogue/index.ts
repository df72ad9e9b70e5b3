export { SqliteCatalogueReader } from './catalogue-reader.ts'
export { fingerprintDigest } from './fingerprint.ts'
export { catalogueMigrations } from './schema.ts'
export { SqliteCatalogue } from './sqlite-catalogue.ts'
