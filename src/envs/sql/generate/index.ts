export { generateRecords, recordLevels } from './generate.ts'
