import { PaddockError } from '../../core/index.ts'
import type { LooseObject } from '../session/sampling.ts'
import { tryEngineText } from './http.ts'
import type { PromptIds } from './prompt-ids.ts'

/** One id of a prompt as an engine tells it. */
export interface ToldId {
  readonly id: unknown
  readonly logprob: unknown
}

/** Rounding of a sure token. */
const slack = 1e-4

/** Holds what an engine told of a prompt against what was asked. Throws `ENGINE_UNTRUSTED`. */
export function checkedLogprobs({ ids }: PromptIds, told: readonly (ToldId | null)[]): readonly (number | null)[] {
  if (told.length !== ids.length) throw untrusted(`${told.length} logprobs came for ${ids.length} ids`)
  return told.map((one, at) => {
    if (at === 0) return null
    if (one === null || one.id !== ids[at]) throw untrusted(`position ${at} is of another id than was asked`)
    const { logprob } = one
    if (typeof logprob !== 'number' || !Number.isFinite(logprob) || logprob > slack)
      throw untrusted(`position ${at} has no logprob`)
    return Math.min(0, logprob)
  })
}

/** Asks a route that scores. Throws `ENGINE_UNREACHABLE`, `ENGINE_ERROR`. */
export async function askScore(root: string, path: string, apiKey: string | null, body: string): Promise<LooseObject> {
  const { status, body: answer } = await tryEngineText(root, path, apiKey, body)
  if (status < 400 && answer !== null) return answer
  const error: unknown = answer?.['error'] ?? answer
  const said: unknown = typeof error === 'object' && error !== null && 'message' in error ? error.message : null
  const why = typeof said === 'string' ? said : 'it gave no reason.'
  throw new PaddockError('ENGINE_ERROR', `The engine did not score the ids: ${why}`, { data: { status } })
}

export function untrusted(problem: string): PaddockError {
  return new PaddockError('ENGINE_UNTRUSTED', `The engine told logprobs that cannot be of the ids asked: ${problem}.`, {
    fix: 'Ask `paddock doctor` about the engine, or score with another one.',
  })
}
