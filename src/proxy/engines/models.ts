import type { LooseObject } from '../session/sampling.ts'

/** Model ids that an engine lists at `/v1/models`, in its order, without the LoRA adapters that are put on one of them. */
export function listedModels(models: LooseObject | null): string[] {
  return modelCards(models).flatMap(({ id, parent }) =>
    typeof id === 'string' && typeof parent !== 'string' ? [id] : [],
  )
}

/** `max_model_len` of a listed model (vLLM, SGLang), or of the first one. Null where the engine does not say. */
export function contextLength(models: LooseObject | null, model: string | null): number | null {
  const card = modelCards(models).find(({ id }) => model === null || id === model)
  const length = card?.['max_model_len']
  return typeof length === 'number' ? length : null
}

/** What an engine says of each model. */
export function modelCards(models: LooseObject | null): readonly LooseObject[] {
  const data = models?.['data']
  if (!Array.isArray(data)) return []
  return data.filter((item: unknown): item is LooseObject => typeof item === 'object' && item !== null)
}
