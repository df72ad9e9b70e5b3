export { webarena } from './importer.ts'
