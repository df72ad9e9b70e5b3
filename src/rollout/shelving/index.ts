export { EngineOverUpdates, type OverNodes, type Shelved } from './over-updates.ts'
export { type AtWeightUpdate, ShelvableAgent } from './shelvable-agent.ts'
export { Shelving } from './shelving.ts'
