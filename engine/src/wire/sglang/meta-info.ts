import { routedExpertsInt32 } from '../experts.ts'
import { wireLogprob } from '../logprobs.ts'
import type { Engine } from '../../engine.ts'
import type { Choice } from '../../generation/choice.ts'
import type { Begun } from '../begin.ts'

/** Why a choice ended, as SGLang says it (`srt/managers/schedule_batch.py` FINISH_*); null while it runs. */
export function finishReason(choice: Choice): Record<string, unknown> | null {
  const { finish } = choice
  if (finish === undefined) return null
  if (finish.reason === 'length') return { type: 'length', length: choice.ids.length }
  if (finish.reason === 'abort') return { type: 'abort', message: 'Aborted' }
  return { type: 'stop', matched: finish.stop ?? choice.ids.at(-1) ?? null }
}

/**
 * `meta_info` of a reply (`srt/managers/tokenizer_manager.py`, `_handle_batch_output`). `weight_versions` spans exist
 * since SGLang pull request 35926. Logprob rows are `[logprob, id, text]`; text is null unless it was asked for.
 */
export function metaInfo(
  engine: Engine,
  begun: Begun,
  choice: Choice,
  asked: { input?: readonly unknown[]; logprobs: boolean; text: boolean; top: number; experts?: boolean },
): Record<string, unknown> {
  const { vocabulary } = engine.profile
  const textOf = (id: number): string | null => (asked.text ? vocabulary.decode([id]) : null)
  const { faults } = begun
  const drop = faults.find('wrong_usage')?.by ?? 0
  const row = (logprob: number | string, id: number): [number | string, number, string | null] => [
    logprob,
    id,
    textOf(id),
  ]
  const shown = asked.logprobs && faults.find('null_logprobs') === undefined
  return {
    id: begun.generation.plan.requestId,
    finish_reason: finishReason(choice),
    prompt_tokens: begun.promptIds.length,
    weight_version: choice.versions.at(-1)?.version ?? engine.weightVersion,
    num_retractions: 0,
    ...(engine.options.weightVersionsInReplies ? { weight_versions: choice.versions } : {}),
    ...(shown
      ? {
          input_token_logprobs: asked.input ?? [],
          output_token_logprobs: choice.draws.map((drawn, at) =>
            row(wireLogprob(drawn.logprob, at + 1, faults), drawn.id),
          ),
          ...(asked.top > 0
            ? {
                output_top_logprobs: choice.draws.map((drawn) =>
                  drawn.top.map((other) => row(other.logprob, other.id)),
                ),
              }
            : {}),
        }
      : {}),
    ...(asked.experts === true ? { routed_experts: routedExpertsInt32(begun.promptIds, choice.ids) } : {}),
    completion_tokens: choice.ids.length + drop,
    cached_tokens: 0,
  }
}
