export { referenceAgent, type ReferenceOptions } from './agent.ts'
