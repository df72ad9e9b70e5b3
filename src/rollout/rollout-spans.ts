import type { Context, Span } from '@opentelemetry/api'
import {
  attribute,
  closeRolloutContext,
  type EventBody,
  type Id,
  openRolloutContext,
  openTelemetry,
  type Stage,
  spanName,
  tracer,
  type Verdict,
} from '../core/index.ts'

/** What a rollout's span says of it. */
export interface RolloutIdentity {
  readonly runId: Id
  readonly harness: string
  readonly task: string
}

type ToolResult = Extract<EventBody, { kind: 'tool_result' }>

/** A rollout as a span, with its stages and tool calls under it, made of the events that are stored anyway. */
export class RolloutSpans {
  readonly #rolloutId: Id
  readonly #span: Span
  readonly #context: Context
  readonly #stages = new Map<Stage, Span>()

  constructor(rolloutId: Id, { runId, harness, task }: RolloutIdentity, at: number) {
    this.#rolloutId = rolloutId
    this.#span = tracer().startSpan(`${spanName.rollout} ${harness}`, {
      kind: openTelemetry().SpanKind.INTERNAL,
      root: true,
      startTime: at,
      attributes: {
        [attribute.operation]: spanName.rollout,
        [attribute.agent]: harness,
        [attribute.run]: runId,
        [attribute.rollout]: rolloutId,
        [attribute.task]: task,
      },
    })
    this.#context = openRolloutContext(rolloutId, this.#span)
  }

  event(body: EventBody, at: number): void {
    if (!this.#span.isRecording()) return
    if (body.kind === 'stage') this.#stage(body.stage, body.phase, at)
    if (body.kind === 'tool_result') this.#tool(body, at)
    if (body.kind === 'rollout_end') this.#end(body.end, body.fault ?? body.end, at)
  }

  /** The verdict of this rollout, as the conventions write an evaluation; without a number where it has none. */
  verdict({ status, reward, verifier }: Verdict, at: number): void {
    const score = reward === null ? {} : { [attribute.score]: reward }
    const evaluation = { [attribute.evaluation]: verifier.id, [attribute.scoreLabel]: status, ...score }
    this.#span.addEvent('gen_ai.evaluation.result', evaluation, at)
  }

  #stage(stage: Stage, phase: 'start' | 'end', at: number): void {
    if (phase === 'start') {
      const attributes = { [attribute.stage]: stage, [attribute.rollout]: this.#rolloutId }
      const span = tracer().startSpan(`${spanName.stage} ${stage}`, { startTime: at, attributes }, this.#context)
      this.#stages.set(stage, span)
      return
    }
    this.#stages.get(stage)?.end(at)
    this.#stages.delete(stage)
  }

  #tool({ tool, toolCallId, status, durationMs }: ToolResult, at: number): void {
    const span = tracer().startSpan(
      `${spanName.tool} ${tool}`,
      {
        kind: openTelemetry().SpanKind.INTERNAL,
        startTime: at - durationMs,
        attributes: {
          [attribute.operation]: spanName.tool,
          [attribute.tool]: tool,
          [attribute.toolCall]: toolCallId,
          [attribute.rollout]: this.#rolloutId,
        },
      },
      this.#context,
    )
    if (status !== 'ok') {
      span.setAttribute(attribute.error, status)
      span.setStatus({ code: openTelemetry().SpanStatusCode.ERROR, message: status })
    }
    span.end(at)
  }

  #end(end: string, errorType: string, at: number): void {
    for (const span of this.#stages.values()) span.end(at)
    this.#span.setAttribute(attribute.rolloutEnd, end)
    if (end === 'infra' || end === 'harness_crash') {
      this.#span.setAttribute(attribute.error, errorType)
      this.#span.setStatus({ code: openTelemetry().SpanStatusCode.ERROR, message: errorType })
    }
    this.#span.end(at)
    closeRolloutContext(this.#rolloutId)
  }
}
