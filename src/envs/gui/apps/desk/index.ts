export { desk } from './desk.ts'
