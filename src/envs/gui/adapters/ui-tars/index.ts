export { uiTarsAdapter } from './ui-tars.ts'
