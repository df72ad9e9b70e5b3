export { cuaBench } from './importer.ts'
