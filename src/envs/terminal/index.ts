export { terminal, terminalEnvironment, type TerminalOptions } from './environment.ts'
export { nearest } from './toml.ts'
