export { verifiersEnvironment, type VerifiersOptions } from './environment.ts'
