export { notes } from './notes.ts'
