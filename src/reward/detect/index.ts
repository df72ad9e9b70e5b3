export { actionsOf } from './actions.ts'
export { type AskedCall, askedCalls } from './asked-calls.ts'
export { detect, type DetectorName, type Finding, type Seen } from './detectors.ts'
