export { mail } from './mail.ts'
