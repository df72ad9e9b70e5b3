import type { EngineFingerprint } from '../core/index.ts'
import type { EngineAdapter } from './engines/contract.ts'
import { scoreIds, type ScoreOrder, type Scores } from './scoring.ts'

/** An engine that only scores: of a reference model, of a teacher. Nothing is sampled by it, and it is never trained. */
export interface Scorer {
  readonly url: string
  /** Asks it what it is. Throws `ENGINE_UNREACHABLE`. */
  identity(): Promise<EngineFingerprint>
  /** The version of its weights, null where it names none. Throws `ENGINE_UNREACHABLE`. */
  weightVersion(): Promise<string | null>
  /** Throws what `Proxy.scoreIds` throws. */
  score(order: ScoreOrder): Promise<Scores>
}

/** Makes an engine one that scores. */
export function createScorer(engine: EngineAdapter): Scorer {
  const weightVersion = async (): Promise<string | null> => (await engine.control?.weightVersion()) ?? null
  return {
    url: engine.url,
    identity: () => engine.fingerprint(),
    weightVersion,
    score: (order) =>
      scoreIds(order, {
        engine: () => engine,
        weights: async () => {
          const version = await weightVersion()
          return [{ url: engine.url, weightVersion: version, told: version !== null, adapter: null }]
        },
        paused: () => null,
      }),
  }
}
