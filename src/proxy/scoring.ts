import { type LogprobKind, PaddockError } from '../core/index.ts'
import type { EngineAdapter } from './engines/contract.ts'
import { shownUrl } from './engines/http.ts'
import { PromptIds } from './engines/prompt-ids.ts'
import type { ReplicaWeights } from './fleet/contract.ts'

/** Ids to score. */
export interface ScoreOrder {
  readonly sequences: readonly Int32Array[]
  /** Refuses other weights than these; null: whatever there is. */
  readonly ifVersion: string | null
}

/** Logprobs of given ids at temperature 1, without truncation. */
export interface Scores {
  /** Per sequence, shape [T], natural log; null for the first id. */
  readonly logprobs: readonly (readonly (number | null)[])[]
  readonly kind: LogprobKind
  /** Of all of it: read before and after. Null where nobody tells. */
  readonly weightVersion: string | null
  /** True where the server says so itself. */
  readonly told: boolean
}

/** What scoring asks of the replicas. */
export interface ScoringParts {
  readonly engine: () => EngineAdapter
  readonly weights: () => Promise<readonly ReplicaWeights[]>
  /** How generation is paused; null: it is not. */
  readonly paused: () => string | null
}

/** So many sequences are scored at once: generations come first. */
const atOnce = 2

/**
 * Scores ids by one replica, under one version of the weights. Throws `ENGINE_INCAPABLE` where it has no route for that, `SCORE_REFUSED`
 * for other weights than asked and for weights that change on the way, and what the engine's own route throws.
 */
export async function scoreIds(
  { sequences, ifVersion }: ScoreOrder,
  { engine: engineNow, weights, paused }: ScoringParts,
): Promise<Scores> {
  const engine = engineNow()
  const { score } = engine
  if (score === undefined) {
    throw new PaddockError('ENGINE_INCAPABLE', `The engine ${engine.name} at ${shownUrl(engine.url)} scores no ids.`, {
      fix: 'Use vLLM or SGLang: llama.cpp and bare OpenAI servers have no route that tells logprobs of a prompt.',
    })
  }
  const versionNow = async (): Promise<ReplicaWeights> => {
    const mode = paused()
    if (mode !== null) throw refused(`generation is paused (${mode}) for other weights`)
    const found = (await weights()).find(({ url }) => url === engine.url || url === shownUrl(engine.url))
    return found ?? { url: engine.url, weightVersion: null, told: false, adapter: null }
  }
  const before = await versionNow()
  if (ifVersion !== null && before.weightVersion !== ifVersion) {
    throw refused(`the weights are ${before.weightVersion ?? 'not known'}, and ${ifVersion} was asked for`)
  }
  const logprobs: (readonly (number | null)[])[] = []
  for (let at = 0; at < sequences.length; at += atOnce) {
    const scored = await Promise.all(
      sequences.slice(at, at + atOnce).map((ids) => score(new PromptIds(ids), before.adapter)),
    )
    for (const one of scored) {
      // Below an adapter the answer names other weights than those that are live.
      const isOwn = before.adapter === null && one.weightVersion !== null && before.weightVersion !== null
      if (isOwn && one.weightVersion !== before.weightVersion)
        throw refused(`the weights became ${one.weightVersion} on the way`)
      logprobs.push(one.logprobs)
    }
  }
  const after = await versionNow()
  if (after.weightVersion !== before.weightVersion) {
    throw refused(`the weights became ${after.weightVersion ?? 'unknown'} on the way`)
  }
  return { logprobs, kind: engine.logprobKind, weightVersion: before.weightVersion, told: before.told }
}

function refused(why: string): PaddockError {
  return new PaddockError('SCORE_REFUSED', `Nothing is scored: ${why}.`)
}
