export { broughtItems } from './brought.ts'
