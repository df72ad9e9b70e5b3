export { openEnvEnvironment, type OpenEnvOptions } from './environment.ts'
export type { OpenEnvServer } from './episode.ts'
export type { ServerProgram } from '../side-server/index.ts'
