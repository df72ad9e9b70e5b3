export { type EgressAttempt, type EgressGate, egressGate, type EgressGateOptions, isProxyRequest } from './gate.ts'
export { type EgressPolicy, parseEgress } from './policy.ts'
export { nameServer } from './names.ts'
