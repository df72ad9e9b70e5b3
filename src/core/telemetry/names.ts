import type { Tracer } from '@opentelemetry/api'
import { openTelemetry } from './api.ts'

/**
 * The tracer of everything that Paddock does. Without an SDK in the process it makes spans that record nothing. Asked for
 * at each use, because an SDK may be registered after this module is loaded.
 */
export function tracer(): Tracer {
  return openTelemetry().trace.getTracer('paddock')
}

/** Operations by the GenAI semantic conventions (1.41), and what of ours has no name there. */
export const spanName = {
  call: 'chat',
  rollout: 'invoke_agent',
  tool: 'execute_tool',
  stage: 'paddock.stage',
} as const

/**
 * Attributes that spans carry: `gen_ai.*`, `error.type` as the conventions (1.41) name them, `paddock.*` our own.
 * `docs/reference/spans.md` lists them. Prompts, answers and tool arguments are never among them.
 */
export const attribute = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  model: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  agent: 'gen_ai.agent.name',
  tool: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  evaluation: 'gen_ai.evaluation.name',
  score: 'gen_ai.evaluation.score.value',
  scoreLabel: 'gen_ai.evaluation.score.label',
  error: 'error.type',
  run: 'paddock.run.id',
  rollout: 'paddock.rollout.id',
  task: 'paddock.task.name',
  rolloutEnd: 'paddock.rollout.end',
  stage: 'paddock.stage.name',
  callSeq: 'paddock.call.seq',
  callClass: 'paddock.call.class',
  strategy: 'paddock.call.strategy',
  forks: 'paddock.call.forks',
} as const
