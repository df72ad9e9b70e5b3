export {
  engineUrls,
  type EnvironmentVariables,
  environmentVariables,
  objectStoreKeys,
  type ObjectStoreKeys,
} from './environment.ts'
export {
  configFileNames,
  defineConfig,
  foundConfig,
  loadConfig,
  type LoadConfigOptions,
  type LoadedConfig,
  mergeRunBudgets,
  mergeRunGroup,
  mergeSessionConfig,
} from './load.ts'
export { requireOwnPlace } from './own-file.ts'
export { nearest } from './nearest.ts'
export {
  type Config,
  type ConfigInput,
  enginesPlace,
  type PluginRef,
  type PresetInput,
  sessionSchema,
  stageBudgets,
} from './schema.ts'
