import { PaddockError } from '../../core/index.ts'
import type { Adapter, AdapterRoutes } from '../engines/adapters.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import { reason, shownUrl } from '../engines/http.ts'
import type { SeenAdapter } from '../upstream.ts'
import type { KnownWeights } from './known-weights.ts'

/** Weights that are a LoRA adapter, and what they are called. One object for as long as they are live. */
export interface AdapterVersion extends Adapter {
  readonly version: string
}

/** An adapter that a replica has said that it has. */
export interface HeldAdapter extends SeenAdapter {
  readonly of: AdapterVersion
  readonly routes: AdapterRoutes
  /** Names of the model that it is put on; the first is what the engine calls itself. */
  readonly models: readonly string[]
}

/** What becomes of adapters, for whoever follows the fleet. */
export type TellAdapter = (detail: string) => void

/**
 * The adapters of one replica: which one new generations name, which ones running generations hold, and which ones may go. One that is not
 * live any more is unloaded when nothing runs under it, and never before {@link ReplicaAdapters.drop} says that nobody names it.
 */
export class ReplicaAdapters {
  /** What new generations name. */
  current: HeldAdapter | null = null
  private readonly engine: EngineAdapter
  private readonly weights: KnownWeights
  private readonly tell: TellAdapter
  /** How many generations run under each that is there. */
  private readonly running = new Map<HeldAdapter, number>()
  private readonly dropped = new Set<HeldAdapter>()
  /** What is being unloaded. */
  private leaving: Promise<void> = Promise.resolve()
  private bringing: { readonly of: AdapterVersion; readonly held: Promise<HeldAdapter> } | null = null

  constructor(engine: EngineAdapter, weights: KnownWeights, tell: TellAdapter) {
    this.engine = engine
    this.weights = weights
    this.tell = tell
  }

  /**
   * The replica has it when this resolves: it was asked for its list. `base`: what its own weights have to be called, null: anything. Throws
   * `WEIGHTS_REFUSED`.
   */
  bring(of: AdapterVersion, base: string | null): Promise<HeldAdapter> {
    if (this.bringing?.of === of) return this.bringing.held
    const held = this.brought(of, base).finally(() => {
      if (this.bringing?.held === held) this.bringing = null
    })
    this.bringing = { of, held }
    return held
  }

  /** New generations name it from now on. */
  use(held: HeldAdapter | null): void {
    this.current = held
    if (held === null) return
    this.dropped.delete(held)
    if (!this.running.has(held)) this.running.set(held, 0)
  }

  hold(held: HeldAdapter): void {
    this.running.set(held, (this.running.get(held) ?? 0) + 1)
  }

  release(held: HeldAdapter): void {
    const left = this.running.get(held)
    // The server that had it is gone.
    if (left === undefined) return
    this.running.set(held, left - 1)
    this.maybeUnload(held)
  }

  /** Nobody names any but the current one any more: the others go when nothing runs under them. */
  drop(): void {
    for (const held of this.running.keys()) {
      if (held === this.current) continue
      this.dropped.add(held)
      this.maybeUnload(held)
    }
  }

  /** The server may have been started anew: it has none, for all that is known. */
  forget(): void {
    this.current = null
    this.running.clear()
    this.dropped.clear()
  }

  /** Whether the server still lists it. Where it does not, it is brought again before anything else is asked under it. */
  async stillHas(held: HeldAdapter): Promise<boolean> {
    const listed = await held.routes.listed().catch(() => null)
    if (listed === null || listed.adapters.some(({ name }) => name === held.name)) return true
    if (this.current === held) this.current = null
    this.running.delete(held)
    return false
  }

  private async brought(of: AdapterVersion, base: string | null): Promise<HeldAdapter> {
    const { name, path } = of
    const routes = this.engine.control?.adapters
    if (routes === undefined) throw this.refused('takes no adapters: its kind has no routes for them')
    const other = [...this.running.keys()].find((held) => held.of.version !== of.version && isLike(held.of, of))
    if (other !== undefined) {
      const same = other.name === name ? 'name' : 'path'
      throw this.refused(`has the adapter ${other.name} of weights ${other.version}, and ${name} has its ${same}`)
    }
    await this.leaving
    let listed = await this.asked(routes.listed())
    let there = listed.adapters.find((one) => one.name === name)
    if (there === undefined) {
      if (path === null) throw this.refused(`has no adapter ${name}`)
      const why = await this.asked(routes.load({ name, path }))
      listed = await this.asked(routes.listed())
      there = listed.adapters.find((one) => one.name === name)
      if (there === undefined) throw this.refused(`does not take the adapter ${name}: ${why ?? 'it is not listed'}`)
      this.tell(`loaded ${name}`)
    }
    if (path !== null && there.path !== path) {
      throw this.refused(`has another adapter ${name}, of ${there.path ?? 'an unknown path'}`)
    }
    const own = await this.weights.read()
    if (own === of.version) throw this.refused(`calls the weights below its adapters ${own} already`)
    if (base !== null && own !== null && own !== base) {
      throw this.refused(`has weights ${own} below its adapters, the others ${base}`)
    }
    return { name, version: of.version, base: own, of, routes, models: listed.base }
  }

  private async asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (cause) {
      throw this.refused(`cannot be asked for adapters: ${reason(cause)}`)
    }
  }

  private maybeUnload(held: HeldAdapter): void {
    if (!this.dropped.has(held) || this.running.get(held) !== 0) return
    this.running.delete(held)
    this.dropped.delete(held)
    // It went live again under the same name.
    if ([...this.running.keys()].some(({ name }) => name === held.name)) return
    this.leaving = held.routes.unload(held.name).then(
      (why) => this.tell(why === null ? `unloaded ${held.name}` : `does not unload ${held.name}: ${why}`),
      (cause: unknown) => this.tell(`does not unload ${held.name}: ${reason(cause)}`),
    )
  }

  private refused(what: string): PaddockError {
    const replica = shownUrl(this.engine.url)
    return new PaddockError('WEIGHTS_REFUSED', `The replica ${replica} ${what}.`, { data: { replica } })
  }
}

/** What runs under one might read the files of the other. */
function isLike(one: Adapter, other: Adapter): boolean {
  return one.name === other.name || (one.path !== null && one.path === other.path)
}

/** Why a replica is without an adapter, in words. */
export function whyLacking(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
