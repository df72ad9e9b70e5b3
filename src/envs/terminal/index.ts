export { terminal, terminalEnvironment, type TerminalOptions } from './environment.ts'
export { nearest, parseToml } from './toml.ts'
