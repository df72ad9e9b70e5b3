import { attribute, openTelemetry, rolloutContext, spanName, tracer } from '../core/index.ts'
import type { CallLine } from './contract.ts'

/**
 * A settled call as a span of its own length, under its rollout's span. Made when the call has ended, so that nothing is
 * added to the way of its bytes. `endedAt` is milliseconds since the epoch.
 */
export function traceCall(call: CallLine, provider: string, endedAt: number): void {
  const { model, outcome } = call
  const span = tracer().startSpan(
    model === null ? spanName.call : `${spanName.call} ${model}`,
    { kind: openTelemetry().SpanKind.CLIENT, startTime: endedAt - call.durationMs },
    rolloutContext(call.rolloutId),
  )
  if (!span.isRecording()) return
  span.setAttributes({
    [attribute.operation]: spanName.call,
    [attribute.provider]: provider,
    [attribute.conversation]: call.sessionId,
    [attribute.responseId]: call.callId,
    [attribute.stream]: call.streamed,
    [attribute.finishReasons]: call.finishReasons.filter((reason) => reason !== null),
    [attribute.callSeq]: call.seq,
    [attribute.callClass]: call.callClass,
    [attribute.strategy]: call.strategy,
    [attribute.forks]: [...call.forks],
    ...optional(attribute.model, model),
    ...optional(attribute.rollout, call.rolloutId),
    ...optional(attribute.inputTokens, call.promptTokens),
    ...optional(attribute.outputTokens, call.sampledTokens),
    // The conventions count it in seconds.
    ...optional(attribute.timeToFirstChunk, call.firstByteMs === null ? null : call.firstByteMs / 1000),
  })
  if (outcome.kind !== 'complete') {
    const type = 'code' in outcome ? outcome.code : outcome.kind
    span.setAttribute(attribute.error, type)
    span.setStatus({ code: openTelemetry().SpanStatusCode.ERROR, message: type })
  }
  span.end(endedAt)
}

function optional(name: string, value: string | number | null): Readonly<Record<string, string | number>> {
  return value === null ? {} : { [name]: value }
}
