export { scriptHarness, type ScriptOptions } from './preset.ts'
