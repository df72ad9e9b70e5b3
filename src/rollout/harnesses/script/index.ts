export { scriptHarness } from './preset.ts'
