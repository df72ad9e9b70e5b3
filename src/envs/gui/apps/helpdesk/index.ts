export { helpdesk } from './helpdesk.ts'
