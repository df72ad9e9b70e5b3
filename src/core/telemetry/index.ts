export { openTelemetry } from './api.ts'
export { attribute, spanName, tracer } from './names.ts'
export { closeRolloutContext, openRolloutContext, rolloutContext } from './rollout-context.ts'
