export { type ServedOpenEnv, serveOpenEnv, type ServeOpenEnvOptions } from './serve.ts'
