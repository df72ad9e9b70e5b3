import { PaddockError } from '../core/index.ts'
import type { SessionPolicy, SessionRecord } from '../trajectory/index.ts'
import type { PolicyFacts, ProxyPolicy } from './contract.ts'
import type { OpenEngineSide } from './engine-side.ts'

/** Which policy a session belongs to, and which engine that one is asked at. */
export class Policies {
  readonly facts: readonly PolicyFacts[]
  readonly names: readonly string[]
  /** Each engine once, that of the first policy first. */
  readonly sides: readonly OpenEngineSide[]
  readonly #lead: OpenEngineSide
  readonly #known: ReadonlyMap<string, { readonly about: ProxyPolicy; readonly side: OpenEngineSide }>

  /** `open` opens the engine of a policy that is not the first. */
  constructor(
    policies: readonly ProxyPolicy[],
    lead: OpenEngineSide,
    open: (engine: NonNullable<ProxyPolicy['engine']>) => OpenEngineSide,
  ) {
    this.#lead = lead
    this.#known = new Map(
      policies.map((about) => [about.name, { about, side: about.engine === null ? lead : open(about.engine) }]),
    )
    this.facts = policies.map(({ engine: _engine, ...facts }) => facts)
    this.names = [...this.#known.keys()]
    this.sides = [...new Set([lead, ...[...this.#known.values()].map(({ side }) => side)])]
  }

  /** Null: of the first. Throws `POLICY_UNKNOWN`. */
  sideOf(name: string | null): OpenEngineSide {
    return name === null ? this.#lead : this.#named(name).side
  }

  /** Throws `POLICY_UNKNOWN`. */
  of({ policy }: Pick<SessionRecord, 'policy'>): OpenEngineSide {
    return this.sideOf(policy.name ?? null)
  }

  /** The policy of a new session as it is recorded: with the name, the model and the training of the one that it belongs to. Throws `POLICY_UNKNOWN`. */
  belonging(policy: SessionPolicy): SessionPolicy {
    const name = policy.name ?? this.names[0]
    if (name === undefined) return policy
    const { model, trained } = this.#named(name).about
    return { ...policy, name, model: model ?? policy.model, ...(trained ? {} : { trained: false }) }
  }

  #named(name: string) {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const are = this.names.length === 0 ? 'none is configured' : `there are ${this.names.join(', ')}`
    throw new PaddockError('POLICY_UNKNOWN', `There is no policy ${name.slice(0, 100)}: ${are}.`, {
      data: { policy: name, known: this.names },
    })
  }
}
