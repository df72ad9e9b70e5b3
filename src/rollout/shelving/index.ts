export { ShelvableAgent } from './shelvable-agent.ts'
export { Shelving } from './shelving.ts'
