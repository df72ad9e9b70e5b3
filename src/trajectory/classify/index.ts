export { type CallFacts, type ClassifiedCall, classifyCall } from './classify-call.ts'
export { withHindsight } from './hindsight.ts'
