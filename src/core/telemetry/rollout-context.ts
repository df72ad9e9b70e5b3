import type { Context, Span } from '@opentelemetry/api'
import type { Id } from '../ids.ts'
import { openTelemetry } from './api.ts'

/**
 * Contexts of the rollouts that run, so that the proxy, which knows a rollout by its id only, hangs calls under the right
 * span. One per process, as OpenTelemetry's own registry is.
 */
const open = new Map<Id, Context>()

/** From here on spans of this rollout hang under `span`. */
export function openRolloutContext(rolloutId: Id, span: Span): Context {
  const { ROOT_CONTEXT, trace } = openTelemetry()
  const context = trace.setSpan(ROOT_CONTEXT, span)
  // Without an SDK nothing is kept.
  if (span.isRecording()) open.set(rolloutId, context)
  return context
}

export function closeRolloutContext(rolloutId: Id): void {
  open.delete(rolloutId)
}

/** The root where the rollout is unknown here. */
export function rolloutContext(rolloutId: Id | null): Context {
  return (rolloutId === null ? undefined : open.get(rolloutId)) ?? openTelemetry().ROOT_CONTEXT
}
