import type { Config } from '../config/index.ts'
import { isPaddockError, PaddockError } from '../core/index.ts'
import type { AlikeEngines } from '../rollout/index.ts'
import type { EngineAdapter, EngineProbe } from '../proxy/index.ts'
import type { EngineIdentity, NamedEngine, NamedEngines } from '../trajectory/index.ts'
import {
  adapterFor,
  describeEngine,
  findReplica,
  type ResolvedEngine,
  resolveEngine,
  type ResolveOptions,
} from './engine.ts'

/** A named replica that answered. */
interface Reached {
  readonly adapter: EngineAdapter
  readonly report: EngineProbe
  readonly identity: EngineIdentity
}

export interface EngineSetOptions extends ResolveOptions {
  /** What a trainer named last; it counts before what is configured. */
  readonly named: NamedEngines | null
  /** A replica that was named cannot be used now, and why. */
  onMissing(url: string, why: PaddockError): void
}

/** The engine of one process: as it is configured, as a trainer named it, or none yet. */
export class EngineSet implements AsyncDisposable {
  readonly #config: Config['engine']
  #found: ResolvedEngine | null
  #identity: EngineIdentity | null
  /** What was asked for, by URL, with the key reference that it was asked with. */
  #byUrl: ReadonlyMap<string, { readonly keyRef: string | null; readonly adapter: EngineAdapter }>

  private constructor(parts: {
    readonly config: Config['engine']
    readonly found: ResolvedEngine | null
    readonly identity: EngineIdentity | null
    readonly named: readonly (readonly [NamedEngine, EngineAdapter])[]
  }) {
    this.#config = parts.config
    this.#found = parts.found
    this.#identity = parts.identity
    this.#byUrl = byUrl(parts.named)
  }

  /** Throws what `resolveEngine` throws. Replicas that a trainer named and that are gone are left out: it names others. */
  static async open(config: Config['engine'], options: EngineSetOptions): Promise<EngineSet> {
    const { named } = options
    if (named === null) {
      const found = Array.isArray(config.url) && config.url.length === 0 ? null : await resolveEngine(config, options)
      return new EngineSet({ config, found, identity: null, named: [] })
    }
    const reached: (readonly [NamedEngine, Reached])[] = []
    for (const engine of named.engines) {
      try {
        const one = await reach(config, engine)
        requireAlike(engine.url, named.identity, one.identity)
        reached.push([engine, one])
      } catch (error) {
        if (!isPaddockError(error)) throw error
        options.onMissing(engine.url, error)
      }
    }
    const all = reached.map(([engine, { adapter }]) => [engine, adapter] as const)
    const found = reached[0] === undefined ? null : resolved(reached.map(([, one]) => one))
    return new EngineSet({ config, found, identity: named.identity, named: all })
  }

  /** Throws `ENGINE_NONE`. */
  get now(): ResolvedEngine {
    if (this.#found !== null) return this.#found
    throw new PaddockError('ENGINE_NONE', 'Paddock has no engine yet.')
  }

  /** Null: none yet. */
  get found(): ResolvedEngine | null {
    return this.#found
  }

  /** See `TrainerEnginesParts.look`. */
  async look(engines: readonly NamedEngine[]): Promise<AlikeEngines> {
    const looked: (readonly [NamedEngine, EngineAdapter])[] = []
    const added: Reached[] = []
    let identity =
      this.#identity ?? (this.#found === null ? null : await identityOf(this.#found.adapter, this.#found.report))
    for (const engine of engines) {
      const known = this.#known(engine)
      if (known !== null) {
        looked.push([engine, known])
        continue
      }
      const one = await reach(this.#config, engine)
      identity ??= one.identity
      requireAlike(engine.url, identity, one.identity)
      added.push(one)
      looked.push([engine, one.adapter])
    }
    const alike = identity ?? {}
    return {
      adapters: looked.map(([, adapter]) => adapter),
      identity: alike,
      take: () => {
        this.#identity = alike
        this.#byUrl = byUrl(looked)
        this.#found ??= resolved(added)
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#found?.[Symbol.asyncDispose]()
  }

  /** The adapter of a replica that is there under the same key. */
  #known({ url, key_ref: keyRef }: NamedEngine): EngineAdapter | null {
    const named = this.#byUrl.get(url)
    if (named !== undefined) return named.keyRef === keyRef ? named.adapter : null
    // What is configured has the configured key.
    if (this.#found === null || keyRef !== null || this.#byUrl.size > 0) return null
    const { adapter, replicas } = this.#found
    return [adapter, ...replicas].find((one) => one.url === url.replace(/\/+$/, '').replace(/\/v1$/, '')) ?? null
  }
}

function byUrl(named: readonly (readonly [NamedEngine, EngineAdapter])[]) {
  return new Map(named.map(([{ url, key_ref: keyRef }, adapter]) => [url, { keyRef, adapter }]))
}

async function reach(config: Config['engine'], engine: NamedEngine): Promise<Reached> {
  const apiKey = keyOf(config, engine)
  const { report, problem } = await findReplica(engine.url, { ...config, apiKey })
  if (report === null) throw problem ?? new PaddockError('ENGINE_UNREACHABLE', `${engine.url} does not answer.`)
  const adapter = adapterFor(config.kind === 'auto' ? report.kind : config.kind, report.url, apiKey, report)
  return { adapter, report, identity: await identityOf(adapter, report) }
}

/** Throws `CONFIG_INVALID` for a name that the configuration does not list. */
function keyOf({ keys }: Config['engine'], { url, key_ref: name }: NamedEngine): string | null {
  if (name === null) return null
  const key = Object.hasOwn(keys, name) ? keys[name] : undefined
  if (key !== undefined) return key
  const known = Object.keys(keys)
  throw new PaddockError('CONFIG_INVALID', `The key ${name} of ${url} is not in the configuration.`, {
    fix:
      known.length === 0
        ? 'Add it to engine.keys of paddock.config.ts.'
        : `engine.keys of the configuration has ${known.join(', ')}.`,
  })
}

async function identityOf(adapter: EngineAdapter, report: EngineProbe): Promise<EngineIdentity> {
  const { tokenizer, chatTemplate, parsers, quantisation } = await adapter.fingerprint()
  const { kind, version, model, logprobKind, maxModelLen } = report
  return { kind, version, model, logprobKind, maxModelLen, tokenizer, chatTemplate, parsers, quantisation }
}

/** Replicas are interchangeable: a session may be answered by any of them. */
function requireAlike(url: string, others: EngineIdentity, own: EngineIdentity): void {
  const differ = Object.keys(own).filter((what) => (others[what] ?? null) !== (own[what] ?? null))
  if (differ.length === 0) return
  const words = differ.map((what) => `${what} ${String(own[what])} instead of ${String(others[what] ?? null)}`)
  throw new PaddockError(
    'ENGINE_DIFFERS',
    `The replica ${url} is another engine than the others: ${words.join(', ')}.`,
    {
      data: { url, differ },
    },
  )
}

function resolved(reached: readonly Reached[]): ResolvedEngine | null {
  const [first, ...others] = reached
  if (first === undefined) return null
  return {
    adapter: first.adapter,
    replicas: others.map(({ adapter }) => adapter),
    found: reached.map(({ report }) => ({ url: report.url, report, problem: null })),
    model: first.report.model,
    scripted: null,
    report: first.report,
    description: describeEngine(first.report, others.length),
    [Symbol.asyncDispose]: async () => undefined,
  }
}
