export { computer13Adapter } from './computer-13.ts'
