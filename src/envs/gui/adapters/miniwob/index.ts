export { miniwobAdapter } from './miniwob.ts'
