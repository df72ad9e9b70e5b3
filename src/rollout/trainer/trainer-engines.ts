import { type Id, PaddockError } from '../../core/index.ts'
import type { EngineAdapter, Proxy, ReplicaStatus } from '../../proxy/index.ts'
import { type EngineIdentity, type NamedEngine, policiesOf, type Store } from '../../trajectory/index.ts'
import { liveWeights } from './adapters.ts'
import type { PolicyUpdates } from './policy-updates.ts'
import { trainerRunOf } from './run-config.ts'

/** Replicas that were looked at and are alike. */
export interface AlikeEngines {
  /** In the order that was asked for; of a replica that there is already its own. */
  readonly adapters: readonly EngineAdapter[]
  readonly identity: EngineIdentity
  /** They are the engine from now on. */
  take(): void
}

export interface TrainerEnginesParts {
  readonly store: Pick<Store, 'catalogue' | 'trainer'>
  readonly proxy: Pick<Proxy, 'setEngines' | 'engineStatus'>
  readonly policy: Pick<PolicyUpdates, 'asOwner'>
  /** Asks each new one what it is. Throws `ENGINE_DIFFERS`, `ENGINE_UNREACHABLE`, `ENGINE_ERROR`, `CONFIG_INVALID`. */
  look(engines: readonly NamedEngine[]): Promise<AlikeEngines>
  /** There was no engine, and now there is one. */
  arrived(): Promise<void>
}

/** The replicas of the engine as the trainer that moves its weights names them. */
export class TrainerEngines {
  readonly #parts: TrainerEnginesParts

  constructor(parts: TrainerEnginesParts) {
    this.#parts = parts
  }

  /**
   * From now on the engine's replicas are these. All or nothing: what is wrong with one changes none. Throws `FENCED`,
   * `POLICY_OWNED`, `RUN_REFUSED` where nothing of the run could train, and what looking at them throws.
   */
  put(
    runId: Id,
    { incarnation, engines }: { readonly incarnation: number; readonly engines: readonly NamedEngine[] },
  ): Promise<readonly ReplicaStatus[]> {
    const { store, proxy, policy } = this.#parts
    return policy.asOwner(runId, incarnation, async () => {
      const run = await store.catalogue.run(runId)
      if (policiesOf(run).length > 0) {
        throw new PaddockError('RUN_REFUSED', 'the engines of several policies are those of the configuration', {
          fix: 'Name them in `policies.<name>.engines`.',
        })
      }
      const { purpose } = trainerRunOf(run)
      const found = await this.#parts.look(engines)
      const [first] = found.adapters
      if (purpose === 'train' && !(first?.gives.tokenIds === true && first.gives.logprobs)) {
        throw new PaddockError(
          'RUN_REFUSED',
          `the engine (${first?.name ?? 'none'}) gives no token ids or no logprobs to train on`,
          {
            fix: 'Use vLLM or SGLang, or a run of purpose `collect`.',
          },
        )
      }
      const isFirst = proxy.engineStatus().replicas.length === 0
      const live = (await store.trainer.versions(runId)).findLast(({ gone }) => !gone)
      // What is stored first is what the next process begins with, whatever becomes of this one.
      await store.trainer.tell(runId, 'policy_engines', { engines, identity: found.identity, incarnation })
      await proxy.setEngines(found.adapters, live === undefined ? null : await liveWeights(store, runId, live.label))
      found.take()
      if (isFirst) await this.#parts.arrived()
      return proxy.engineStatus().replicas
    })
  }
}
