export { serverFault } from './fault.ts'
export { type RunningServer, type ServerProgram, startServer } from './program.ts'
