import { type Id, PaddockError } from '../../core/index.ts'
import type { SessionPolicy } from '../../trajectory/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import type { Upstream } from '../upstream.ts'
import { KnownAbility } from './ability.ts'
import { Closings } from './closings.ts'
import type { TokenStrategyDriver } from './contract.ts'
import { StreamCount } from './derender-steps.ts'
import { recordStrategy } from './record.ts'
import { spliceStrategy } from './splice.ts'

/** Picks token strategies for the sessions of one engine. */
export class TokenStrategies {
  private readonly engine: EngineAdapter
  private readonly upstream: Upstream
  private readonly ability: KnownAbility | null
  private readonly closings = new Closings()
  private readonly streams = new StreamCount()

  /** `voided` hears why the engine has token routes and `auto` does not splice. */
  constructor(engine: EngineAdapter, upstream: Upstream, voided: (why: string) => void) {
    this.engine = engine
    this.upstream = upstream
    this.ability = engine.tokens === undefined ? null : new KnownAbility(engine.tokens, voided)
  }

  /**
   * The engine may have other token routes than before; `changed`: it is another one, with a template of its own. Gives what
   * differs in words, null where nothing does or nobody could ask.
   */
  async relearn({ changed }: { readonly changed: boolean }): Promise<string | null> {
    if (changed) this.closings.forget()
    return (await this.ability?.relearn()) ?? null
  }

  /** Throws `ENGINE_INCAPABLE` where the policy demands `splice` and the engine has no token routes, or its renders make them void. */
  async of(sessionId: Id, policy: SessionPolicy): Promise<TokenStrategyDriver> {
    const { engine, upstream, ability, closings, streams } = this
    if (policy.strategy === 'record' && engine.recordsByTokens !== true)
      return recordStrategy(sessionId, upstream, engine)
    const able = ability === null ? false : await ability.learn()
    const why = ability?.void ?? null
    if (policy.strategy === 'splice' && able === false) {
      if (why !== null) {
        const what = `Nothing can be spliced behind what the engine ${engine.name} at ${engine.url} renders: ${why}.`
        throw new PaddockError('ENGINE_INCAPABLE', what, {
          fix: 'Mend its render route (`paddock doctor` asks it again), or take the strategy `record` or `auto`.',
        })
      }
      throw new PaddockError('ENGINE_INCAPABLE', `The engine ${engine.name} at ${engine.url} has no token routes.`, {
        fix: 'Start vLLM with `--enable-scale-out` (render, generate, derender) or use SGLang 0.5.13 or newer or llama.cpp, or take the strategy `record` or `auto`.',
      })
    }
    if (engine.tokens === undefined || ability === null || (able === false && why === null))
      return recordStrategy(sessionId, upstream, engine)
    const records = policy.strategy === 'record' || (engine.recordsByTokens === true && why !== null)
    return spliceStrategy({
      sessionId,
      records,
      history: policy.history,
      engine: engine.tokens,
      readsChat: engine.readsChat ?? ((sink) => sink),
      ability: () => (records ? ability.routes : ability.ability),
      isVoid: () => !records && ability.void !== null,
      closings,
      streams,
      upstream,
    })
  }
}
