export { containerEvents } from './container-events.ts'
export { type NastyCommand, nastyCommands } from './nasty.ts'
export { sandboxContract, type SandboxContractOptions } from './contract.ts'
export { requireDocker } from './require-docker.ts'
