export { sheet } from './sheet.ts'
