export { osworld } from './importer.ts'
