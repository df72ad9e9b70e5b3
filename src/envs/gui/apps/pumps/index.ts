export { pumps } from './pumps.ts'
