export { shellHarness } from './preset.ts'
