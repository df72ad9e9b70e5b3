export { type EnvironmentVariables, environmentVariables } from './environment.ts'
export {
  configFileNames,
  defineConfig,
  loadConfig,
  type LoadConfigOptions,
  type LoadedConfig,
  mergeSessionConfig,
} from './load.ts'
export { nearest } from './nearest.ts'
export type { Config, ConfigInput, PluginRef } from './schema.ts'
