export { searchEnvironment, type SearchOptions } from './environment.ts'
