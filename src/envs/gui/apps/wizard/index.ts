export { wizard } from './wizard.ts'
