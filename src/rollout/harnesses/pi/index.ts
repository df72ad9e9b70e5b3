export { piHarness } from './preset.ts'
