export { browsergymAdapter } from './browsergym.ts'
