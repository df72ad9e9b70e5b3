export { miniwob } from './importer.ts'
