export { shellHarness, type ShellOptions } from './preset.ts'
