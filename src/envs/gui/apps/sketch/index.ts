export { sketch } from './sketch.ts'
